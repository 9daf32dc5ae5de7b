from __future__ import annotations

import pytest

from wiretape.tape.format.frames import Base64Frames, PackedFrames, Times, pack, unpack


def test_a_frame_shows_what_differs_from_the_one_before() -> None:
    frames = ['data: {"id":"c1","delta":"天"}\n\n', 'data: {"id":"c1","delta":"气"}\n\n', "data: [DONE]\n\n"]
    assert pack(frames) == [frames[0], "~26,4:气", "data: [DONE]\n\n"]
    assert list(unpack(pack(frames))) == frames


def test_a_frame_that_begins_with_a_tilde_is_marked() -> None:
    assert pack(["~1,1:", "~"]) == ["~0,0:~1,1:", "~0,0:~"]
    assert list(unpack(["~0,0:~1,1:", "~0,0:~"])) == ["~1,1:", "~"]


def test_equal_frames_and_frames_that_overlap_themselves() -> None:
    for frames in (["a" * 30] * 3, ["a" * 30, "a" * 31, "a" * 29], ["ab" * 20, "ab" * 21, "ba" * 20]):
        assert list(unpack(pack(frames))) == frames


@pytest.mark.parametrize("shown", ["~", "~1", "~1,2", "~a,b:c", "~-1,0:", "~0,1:x"])
def test_a_wrong_frame_is_named(shown: str) -> None:
    with pytest.raises(ValueError, match=r"events\[0\]"):
        list(unpack([shown]))


def test_lazy_sequences_are_sequences() -> None:
    frames = PackedFrames(pack(["data: first event\n\n", "data: other event\n\n"]))
    assert len(frames) == 2
    assert frames[1] == frames[-1] == b"data: other event\n\n"
    assert frames == (b"data: first event\n\n", b"data: other event\n\n")
    assert frames != (b"data: first event\n\n",)
    assert hash(frames) == hash(tuple(frames))
    assert list(Base64Frames(["AA==", ""])) == [b"\0", b""]
    assert list(Times("0 12 15")) == [0, 12, 15]
    assert len(Times("")) == 0
    with pytest.raises(ValueError, match=r"frames\[0\]: no base64"):
        list(Base64Frames(["?"]))
