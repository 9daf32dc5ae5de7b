"""`--wiretape-mode=new` and `update`: how a test's tape is renewed."""
