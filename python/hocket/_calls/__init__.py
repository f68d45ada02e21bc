"""Parts that all calls share: types in signatures, keywords, refusals, uncopyable objects."""
