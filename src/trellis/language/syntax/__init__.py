"""The syntax tree of a query: frozen nodes that compare by meaning, not by place.

Every node carries the `Span` of text it came from, which equality ignores. Two notations of one thing
(`NEXT(s).price` and `s[i].price` beside `s[i-1]`) are the same node.
"""

from trellis.language.syntax.clauses import *
from trellis.language.syntax.nodes import *
from trellis.language.syntax.patterns import *
from trellis.language.syntax.values import *
