"""A training's selected state as bytes: a model, its optimizer, its tokenizer and a generator."""
