"""How tightly the operators of C++ bind, loosest first."""

CHOICE, OR, AND, EQUAL, ORDER, SUM, PRODUCT, SIGN, ATOM = range(9)
