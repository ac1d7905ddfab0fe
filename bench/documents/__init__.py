"""How much of foreign documents we read, beside other readers. `make bench-docs` collects, measures and writes a table.

A *word* is a run of letters in lower case, or a number, or one Chinese, Japanese or Korean character. A word that a
hyphen divides is one word, in every reader's text. A number counts by its first three significant digits: one reader
says 0.125 where another says 12.5 %. Zeros are left out. A date, a time, or both together are one word, whatever they
are: one reader shows the parts that a sheet shows, and another one all of them. Addresses of links are left out: some
readers write them between the words.

Two more things are left out in every reader's text, because half of the readers have them and the other half does not.
One is what a reader says about the text: marks of pictures, and the names of parts such as "Notes" (markitdown) or
"annotation" (ours). The other is the number of a list item (`1.`, `a)`, `2.1.`) where it begins a line. Before that,
both forms of a list counted as read, and every reader lost one of them.

A *5-gram* is five such words in a row. A 5-gram *counts* if at least two other readers found it. Readers that are made
of one another have one vote: markitdown reads Word files by mammoth, for example.

The *recall* of a reader in a file is its share of the 5-grams that count. A format's recall is the mean over the files
that have at least 30 of them.

A *failure* is a file that a reader does not read, although at least two others do, and these agree on one 5-gram.
"""
