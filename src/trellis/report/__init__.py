"""Pictures of results, of plans and of funnels, and the report: one file that shows them all offline."""
