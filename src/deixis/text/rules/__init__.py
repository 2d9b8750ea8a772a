"""Hand-written English: endings, noun phrases and relations without a parser."""
