"""Export trained models, write their cards, publish them."""
