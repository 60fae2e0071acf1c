"""What the simulator measured for P0's Fig. 9 (docs/fig9.md): to be drawn beside what a live run gives.

Percent of messages not ordered, mean and standard deviation of a run, by share of ucast and conflict ratio. A test
compares these with the table of docs/fig9.md, which ``obo fig9`` has measured.
"""

RATIOS = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
SIMULATED: dict[float, tuple[tuple[float, float], ...]] = {
    1.0: (
        (85.5, 3.4),
        (79.5, 2.9),
        (74.6, 3.6),
        (68.4, 3.1),
        (62.4, 3.3),
        (56.6, 3.9),
        (51.4, 3.2),
        (45.7, 2.8),
        (41.5, 2.9),
        (36.9, 2.4),
        (32.8, 2.3),
    ),
    0.5: (
        (92.2, 3.3),
        (87.0, 2.8),
        (81.5, 3.7),
        (74.9, 3.8),
        (68.7, 4.1),
        (63.1, 3.4),
        (58.3, 4.1),
        (53.7, 4.2),
        (49.8, 4.1),
        (45.3, 4.2),
        (41.8, 4.1),
    ),
    0.0: (
        (98.2, 1.1),
        (92.9, 1.8),
        (88.0, 2.8),
        (82.2, 2.5),
        (77.5, 3.4),
        (72.3, 3.3),
        (67.7, 4.1),
        (63.4, 4.0),
        (59.7, 4.0),
        (56.0, 4.3),
        (52.9, 5.3),
    ),
}
