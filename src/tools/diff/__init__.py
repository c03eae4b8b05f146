"""Two traces compared record by record and number by number.

`sources` reads a side, `alignment` says which records belong together, `values` and `numbers` say
what became of each value, `rules` what counts as a change, and `comparison` puts that together.
The writers are `text`, `markdown` and `json`.
"""
