"""Projections: pure folds over events, thrown away and rebuilt at will (G9)."""
