"""Graph size difference: does an extracted dialogue flow have as many nodes as the flow of the annotations?"""
