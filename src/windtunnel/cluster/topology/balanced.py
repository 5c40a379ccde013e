def balanced_shares(tree, ask, counts): return None
