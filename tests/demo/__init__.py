"""The main job on real inventories, as a newcomer would do it: ``make demo``."""
