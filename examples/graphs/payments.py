"""Triangles among recent payments: three accounts that have all paid each other within an hour, told as they close."""

from collections import deque

from trellis.graphs import Merger, Operator, Splitter, duration

HOUR = duration("1 hour")


class PaymentTriangles(Operator):
    output = {"first": "string", "second": "string", "third": "string", "amount": "float64"}

    def __init__(self):
        self.recent = deque()  # payments of the last hour

    def on_event(self, event):
        if event.payer == event.payee:
            return
        while self.recent and self.recent[0][0] <= event.time - HOUR:
            _, payment, payer, payee = self.recent.popleft()
            if self.graph.edge(payer, payee) == payment:  # there was no later one between the two
                self.manipulate_graph(remove_edges=[(payer, payee)])
                lonely = {one for one in (payer, payee) if not self.graph.degree(one)}
                self.manipulate_graph(remove_vertices=lonely)
        new = not self.graph.has_edge(event.payer, event.payee)
        self.manipulate_graph(add_edges=[(event.payer, event.payee, event.event_id)])
        self.recent.append((event.time, event.event_id, event.payer, event.payee))
        common = self.graph.neighbours(event.payer) & self.graph.neighbours(event.payee)
        for other in sorted(common) if new else ():
            first, second, third = sorted([event.payer, event.payee, other])
            yield {"first": first, "second": second, "third": third, "amount": event.amount}


SPLITTER = Splitter.by_key("currency")
MERGER = Merger(order=["first", "second", "third"])
