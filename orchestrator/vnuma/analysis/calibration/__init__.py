"""The instrument measured: the comparison rule on thousands of simulated studies whose truth is known."""
