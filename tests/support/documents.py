"""One document of each format, with all that its parser knows."""

MARKDOWN = """---
title: One
---
# One *two* `three` {#four}

Five ***six** seven* ~~eight~~ <b class="x">nine</b> <code>ten</code> $a_b$ &amp; \\* https://one.example.
[Link](<a b> "title"), [text][ref], [ref], ![image *alt*](a.png 'one'), <https://two.example>, note[^1].

- [ ] one
  1. two\\
     three

     > four
     > > five

| one | two \\| |
|:---|---:|
| `a|b` | *c* |

term
: definition

```python
code = "<b>"
```

<div align=center><p>one <i>two</i></p></div>

!!! note
    indented

\\begin{equation}
x
\\end{equation}

Setext
======

[ref]: https://three.example "Three"
[^1]: The note.
"""
HTML = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>One &mdash; two</title>
<style>p > b { color: red }</style><script>if (a < b) document.write("<p>one</p>")</script></head>
<body class='x y'><!-- one --><h1 title="a > b">Three <em>four <b>five</b></em></h1>
<p>Six <a href="a?b=1&amp;c=2">seven</a>, <code>eight</code>&nbsp;<img alt="nine" src=x> ten<br/>eleven.</p>
<ul><li>one<li translate="no">two <b>three</b></ul><p class="notranslate">four</p>
<![CDATA[five > six]]><?php echo "seven"; ?><svg><text>eight</text></svg><textarea><b>nine</textarea>
<table><tr><td>1 &lt; 2<td>caf&#233; &#x4f60;</table></body></html>
"""
PO = r"""# One
msgid ""
msgstr ""
"Language: de\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a.c:1
#, c-format
msgid "%d file in \"%s\"\n"
msgid_plural "%d files in \"%s\"\n"
msgstr[0] ""
msgstr[1] ""

#. comment
#| msgid "old"
msgctxt "menu"
msgid ""
"one\n"
"<b>two</b> {three}, {n, plural, one {# file} other {# files}}"
msgstr ""

msgid "four"
msgstr "vier"

#, fuzzy
msgid "five\t%(name)s 50%%"
msgstr ""

#~ msgid "six"
#~ msgstr ""
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
One two three,
four five.

2
00:00:03,000 --> 00:00:04,000 X1:10
{\\an8}<i>Six</i> <font color="red">seven</font>

00:00:05.000 --> 00:00:06.000
- Eight?
- Nine!

3

00:00:07,000 --> 00:00:08,000
1984

ten
"""
TEXT = """One, two and three, which is
wrapped here.

  * four
  * five %s {six}

> seven: eight (https://one.example)
\tnine. Ten! {n, plural, one {# file} other {# files}}
1. eleven
"""
DOCUMENTS = {".txt": TEXT, ".md": MARKDOWN, ".html": HTML, ".po": PO, ".srt": SRT}
