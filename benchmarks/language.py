"""Every construct of the language over 100,000 events in groups of 1,000: events a second, and rows per answer."""

from __future__ import annotations

QUERIES: dict[str, str] = {
    # Quantifiers and groups.
    "E?": "SEQ(A a, B? b, C c) WHERE [part, sym]",
    "E*": "SEQ(A a, B* b[], C c) WHERE [part]",
    "E{n}": "SEQ(A a, B{3} b[], C c) WHERE [part]",
    "E{n,m}": "SEQ(A a, B{2,4} b[], C c) WHERE [part] AND b[i].price > b[i-1].price",
    "E{n,}": "SEQ(A a, B{3,} b[], C c) WHERE [part]",
    "SEQ(...)+": "SEQ(A a, B b)+ g[] WHERE [part]",
    "SEQ(...){n,m}": "SEQ(SEQ(A a, B b){2,3} g[], C c) WHERE [part]",
    "OR(...)*": "SEQ(A a, OR(B b, C c)* g[], D d) WHERE [part]",
    "AND(...)+": "SEQ(A a, AND(B b, C c)+ g[] skip-till-next, skip-till-next D d) WHERE [part] SELECT skip-till-next",
    "nested groups": "SEQ(SEQ(A a, B+ b[])+ h[], C c)+ g[] WHERE [part] SELECT skip-till-next",
    "g[i], g[i-1]": "SEQ(A a, B b)+ g[] WHERE [part] AND g[i].a.price > g[i-1].b.price SELECT skip-till-next",
    "FIRST(g), LAST(g)": "SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] AND FIRST(g).a.price < c.price SELECT skip-till-next",
    "g[k]": "SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] AND g[2].a.price < c.price SELECT skip-till-next",
    "COUNT(g)": "SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] HAVING COUNT(g) > 2 SELECT skip-till-next",
    # Steps.
    "policies of steps": "SEQ(A a, contiguous B+ b[] skip-till-next, C c) WHERE [part]",
    "policies of steps, any": "SEQ(A a, skip-till-next B+ b[] skip-till-any, contiguous C c) WHERE [part]",
    "greedy": "SEQ(A a, B+ b[] skip-till-next greedy, skip-till-next C c) WHERE [part]",
    "UNTIL": "SEQ(A a, B+ b[] UNTIL (b.price > 1.05 * a.price), C c) WHERE [part]",
    # After a match.
    "PAST LAST": "SEQ(A a, B+ b[], C c) WHERE [part] AFTER MATCH SKIP PAST LAST",
    "TO NEXT": "SEQ(A a, B+ b[], C c) WHERE [part] AFTER MATCH SKIP TO NEXT",
    "TO FIRST": "SEQ(A a, B+ b[], C c) WHERE [part] AFTER MATCH SKIP TO FIRST b",
    "TO LAST": "SEQ(A a, B+ b[], C c) WHERE [part] AFTER MATCH SKIP TO LAST b",
    "PAST LAST, the longest": "SEQ(A a, B+ b[], C c) WHERE [part] ORDER BY LENGTH DESC AFTER MATCH SKIP PAST LAST",
    "PAST LAST, the greatest": "SEQ(A a, B+ b[], C c) WHERE [part] ORDER BY SUM(b.volume) DESC AFTER MATCH SKIP PAST LAST",
    "PAST LAST, contiguous": "SEQ(A a, B+ b[], C c) WHERE [part] SELECT contiguous REPORT any ORDER BY LENGTH DESC AFTER MATCH SKIP PAST LAST",
    # So far, whole variables, HAVING.
    "COUNT so far": "A+ a[] WHERE [part] AND COUNT(a[..i]) <= 5",
    "AVG so far": "A+ a[] WHERE [part] AND a[i].price > AVG(a[..i-1].price) SELECT skip-till-next",
    "SUM so far": "SEQ(A a, B+ b[], C c) WHERE [part] AND SUM(b[..i].volume) < 2000 SELECT skip-till-next",
    "MIN, MAX so far": "A+ a[] WHERE [part] AND a[i].volume > MAX(a[..i-1].volume)",
    "NOT IN so far": "SEQ(A a, B+ b[], C c) WHERE [part] AND b[i].sym NOT IN (b[..i-1].sym) SELECT skip-till-next",
    "whole variables": "SEQ(A a, B+ b[], C c) WHERE [part] AND SUM(b.volume) > c.volume SELECT skip-till-next",
    "COUNT of a variable": "SEQ(A a, B+ b[], C c) WHERE [part] AND COUNT(b) BETWEEN 2 AND 4",
    "HAVING LENGTH": "SEQ(A a, B+ b[], C c) WHERE [part] HAVING LENGTH >= 5",
    "HAVING sums": "SEQ(A a, B+ b[], C c) WHERE [part] HAVING SUM(b.volume) > 3000 SELECT skip-till-next",
    "HAVING FIRST, LAST": "SEQ(A a, B+ b[], C c) WHERE [part] HAVING LAST(b).price > FIRST(b).price + 1 SELECT skip-till-next",
    # NOT.
    "NOT": "SEQ(A a, NOT(D d), B b) WHERE [part]",
    "NOT inside AND": "AND(A a, B b, NOT(D d)) WHERE [part] AND d.price > 110",
    "NOT in AND in SEQ": "SEQ(A a, AND(B b, NOT(D d)), C c) WHERE [part]",
    "NOT of a composite": "SEQ(A a, NOT(SEQ(B b, D d)), C c) WHERE [part]",
    "NOT beside optional": "SEQ(A a, NOT(D d), B? b, C c) WHERE [part]",
    # Output.
    "LIMIT PER": "SEQ(A a, B b, C c) WHERE [part] SELECT skip-till-next LIMIT 1 PER a.sym",
    "functions in WHERE": "SEQ(A a, B b) WHERE [part] AND ROUND(a.price) = FLOOR(b.price) AND CAST(a.sym AS text) LIKE '1%'",
    "CASE": "SEQ(A+ a[], B b) WHERE [part] AND CASE WHEN a[i].volume > 500 THEN a[i].price > a[i-1].price ELSE FALSE END",
    "IN": "SEQ(A a, B b) WHERE [part] AND a.sym IN (1, 2, 3) AND b.sym NOT IN (4, 5)",
    "AGGREGATE": "SEQ(A a, B+ b[], C c) WHERE [part] AGGREGATE SUM(LENGTH), MAX(2 * b.volume + 1) AS most, AVG(b.price)",
    "PER EVENT": "SEQ(A a, B+ b[], C c) WHERE [part] AGGREGATE COUNT(*), SHARE PER EVENT",
    "PER EVENT OF v": "SEQ(A a, B+ b[], C c) WHERE [part] AGGREGATE COUNT(*), AVG(LENGTH) PER EVENT OF b",
}
