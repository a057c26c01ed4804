import unittest

from till import total


class Total(unittest.TestCase):
    def test_every_price_counts(self) -> None:
        self.assertEqual(total([2, 3]), 5)
