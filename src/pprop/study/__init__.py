"""Many runs: their statistics and figures."""
