"""Out-of-scope detection: is what belongs to no class told apart, and the rest classified?"""
