"""Campaigns that try to lose data, leak secrets, hang, or escape: minutes each, run by `make torture`.

Each module is one campaign with a `main(argv) -> int`. It runs the `wiretape` command of its Python's installation,
so a campaign can test another installation: `OTHER/bin/python -m tests.torture.kills`.
"""
