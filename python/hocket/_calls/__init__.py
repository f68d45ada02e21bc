"""What calls share: types in signatures, keywords, refusals, and objects that cannot be copied."""
