"""What tests share: arms, motions, recordings with a known truth, and where real data lies."""
