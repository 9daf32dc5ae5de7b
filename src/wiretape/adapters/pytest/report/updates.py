"""The lines about tapes that `--wiretape-mode=update` has changed, and the last step for tapes that tests share.

A call that one test does not make may belong to another. So calls are dropped from a shared tape only when all tests
that use it have passed. Each test reports what it left, also from workers of pytest-xdist.

Loaded in every pytest run: import nothing heavy here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from wiretape.adapters.pytest.tape_paths import shown
from wiretape.errors import WiretapeError
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.adapters.pytest.tape_users import Users
    from wiretape.adapters.settings import Settings
    from wiretape.adapters.update.updated_tape import UpdatedTape
    from wiretape.matching.report import ReplayReport
    from wiretape.matching.values import Miss

_MOST_REASONS = 6
_MOST_NAMED = 12


class TapeUpdate(TypedDict):
    """What one passed test did to its tape. Travels from workers of xdist, so it has only plain values.

    `fresh`: the number of exchanges that were called live; `why`: their differences. `users`: the ids of the tests that
    share the tape; `partial`: why there may be more of them. `left`: the exchanges that the test did not ask for, by
    digest, if other tests share the tape. `kept` and `dropped`: of a tape that only this test uses.
    """

    tape: str
    users: list[str]
    partial: str
    fresh: int
    kept: int
    dropped: list[str]
    why: list[str]
    left: dict[str, int]


def update_of(tape: Path, users: Users | None, updated: UpdatedTape, misses: Sequence[Miss]) -> TapeUpdate:
    """Describe the update of a passed test before it is written. `users`: None if only this test uses the tape."""
    from wiretape.adapters.pytest.report.failures import headline
    from wiretape.adapters.update.updated_tape import digest

    made = first_recording(tape, users)
    made["fresh"], made["kept"] = len(updated.fresh), len(updated.kept)
    made["why"] = [f"{miss.what}: {headline(miss, tape.name) or miss.reason}" for miss in misses]
    made["left"] = dict(Counter(map(digest, updated.left))) if users is not None else {}
    return made


def first_recording(tape: Path, users: Users | None) -> TapeUpdate:
    """Describe the recording of a test that had no tape: it left nothing."""
    tests, partial = (list(users.tests), users.partial) if users is not None else ([], "")
    return TapeUpdate(tape=str(tape), users=tests, partial=partial, fresh=0, kept=0, dropped=[], why=[], left={})


def dropped_names(report: ReplayReport, misses: Sequence[Miss]) -> list[str]:
    """The names of dropped calls, without those that were called live because their recording was incomplete."""
    again = {miss.nearest.exchange for miss in misses if miss.reason == "not playable" and miss.nearest is not None}
    names = [str(one) for one in report.left_over if one.exchange not in again]
    return names + ([plural(report.sockets, "WebSocket")] if report.sockets else [])


def finish_updates(tests: Mapping[str, TapeUpdate], settings: Settings) -> list[str]:
    """Drop the calls of shared tapes that no test makes. Return the lines about all tapes."""
    by_tape: dict[str, dict[str, TapeUpdate]] = {}
    for test, one in tests.items():
        by_tape.setdefault(one["tape"], {})[test] = one
    lines: list[str] = []
    untouched = 0
    for tape, users in by_tape.items():
        of_tape = list(_finish(Path(tape), users, settings))
        lines += of_tape
        untouched += not of_tape
    if untouched:
        count = f"{untouched} tapes still answer" if untouched > 1 else "1 tape still answers"
        lines.append(f"{count} every call: nothing was called live for {'them' if untouched > 1 else 'it'}")
    return lines


def _finish(tape: Path, tests: Mapping[str, TapeUpdate], settings: Settings) -> Iterator[str]:
    """The lines about one tape; empty if it was not changed."""
    fresh = sum(one["fresh"] for one in tests.values())
    kept = max(one["kept"] for one in tests.values())
    dropped = [name for one in tests.values() for name in one["dropped"]]
    gone, why_kept = len(dropped), ""
    stale = _left_by_all(tests)
    if stale:
        why_kept = _why_kept(tests)
        try:
            gone = 0 if why_kept else _drop(tape, stale, settings)
        except Exception as error:  # the tape stays as the tests have written it
            why_kept = str(error)
    if not (fresh or gone or why_kept):
        return
    if any(one["users"] for one in tests.values()):  # a shared tape
        with suppress(WiretapeError, OSError):  # the tape was deleted: report what one test has kept
            kept = _count_exchanges(tape) - fresh
    if fresh or gone:
        yield f"updated {shown(tape)}: {plural(fresh, 'exchange')} called live, {kept} kept, {gone} dropped"
    reasons = Counter(why for one in tests.values() for why in one["why"])
    for why, times in list(reasons.items())[:_MOST_REASONS]:
        yield f"  {why}{f' ({times} times)' if times > 1 else ''}"
    if dropped:
        more = f" and {len(dropped) - _MOST_NAMED} more" if len(dropped) > _MOST_NAMED else ""
        yield f"  no longer requested: {', '.join(dropped[:_MOST_NAMED])}{more}"
    if why_kept:
        number = sum(stale.values())
        what = f"{plural(number, 'exchange')} that these tests did not request {'stays' if number == 1 else 'stay'}"
        yield f"{shown(tape)}: {what}"
        yield f"  {why_kept}"


def _left_by_all(tests: Mapping[str, TapeUpdate]) -> Counter[str]:
    """The exchanges that none of these tests asked for. A test has not left what it recorded itself."""
    lefts = [Counter(one["left"]) for one in tests.values()]
    common = lefts[0]
    for left in lefts[1:]:
        common &= left
    return common


def _why_kept(tests: Mapping[str, TapeUpdate]) -> str:
    """Why a test outside of these may need the calls that they left; empty if all tests of the tape are known."""
    missing = sorted({user for one in tests.values() for user in one["users"]} - set(tests))
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        return f"other tests that use the tape have not passed in this run: {', '.join(missing[:3])}{more}"
    partial = next((one["partial"] for one in tests.values() if one["partial"]), "")
    return f"{partial}, and others may use this tape: a run of the whole suite drops them" if partial else ""


def _drop(tape: Path, stale: Counter[str], settings: Settings) -> int:
    from wiretape.adapters.update.updated_tape import without

    return without(tape, stale, settings)


def _count_exchanges(tape: Path) -> int:
    from wiretape.tape.reading.reader import read_tape

    return len(read_tape(tape).exchanges)
