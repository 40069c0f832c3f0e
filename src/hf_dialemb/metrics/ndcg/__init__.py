"""nDCG: do the relevant candidates come first?"""
