"""Make the tables beside this file: 1,000 invented recipes, and the pairs that readers save together.

    python examples/recipes/make.py

The cuisine of a recipe is blank in 400 rows. Its words hint at the cuisine, but most of them occur in every kitchen. Recipes
that are saved together are often, but not always, of the same cuisine. Nothing is drawn but by `random.Random.random`, whose
numbers are the same in every version of Python.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Random = Callable[[], float]  # uniform numbers in [0, 1)

SEED = 7
RECIPES, LABELLED, PAIRS = 1000, 600, 2600
OWN_WORD = 0.52  # probability that a seasoning is one of the recipe's own cuisine
OTHER_WORD = 0.1  # and of another cuisine; else it is one of `PANTRY`
SAME_CUISINE = 0.55  # probability that a pair is drawn within a cuisine; else among all recipes
FAVOURITE_DISH = 0.3  # probability that the dish is one of the cuisine's `FAVOURITES`
LIKED = 0.4  # exponent: how unequal the recipes' readers are
NO_MINUTES = 0.12  # share of recipes without a time

SEASONINGS: Mapping[str, Sequence[str]] = {
    "French": ("tarragon", "Dijon mustard", "shallots", "white wine", "crème fraîche", "thyme", "Gruyère", "leeks"),
    "Greek": ("oregano", "feta", "dill", "olives", "yoghurt", "mint", "vine leaves", "cinnamon"),
    "Indian": ("cumin", "turmeric", "garam masala", "coriander", "ghee", "mustard seeds", "yoghurt", "cardamom"),
    "Italian": ("basil", "Parmesan", "rosemary", "capers", "olives", "white wine", "sage", "balsamic vinegar"),
    "Mexican": ("lime", "chipotle", "coriander", "cumin", "avocado", "black beans", "sweetcorn", "oregano"),
    "Thai": ("lemongrass", "fish sauce", "coconut milk", "lime", "chilli", "Thai basil", "ginger", "peanuts"),
}
PANTRY = (
    *("garlic", "onions", "olive oil", "black pepper", "lemon", "parsley", "butter", "tomatoes", "carrots", "celery"),
    *(
        "honey",
        "sea salt",
        "spring onions",
        "chilli",
        "cream",
        "almonds",
        "ginger",
        "peas",
        "bay leaves",
        "red peppers",
    ),
)
MAINS = (
    *(
        "chicken",
        "lamb",
        "beef",
        "pork",
        "salmon",
        "cod",
        "prawn",
        "duck",
        "chickpea",
        "lentil",
        "aubergine",
        "mushroom",
    ),
    *("potato", "cauliflower", "pumpkin", "spinach", "courgette", "cabbage", "white bean", "beetroot", "fennel", "egg"),
)
DISHES: Mapping[str, tuple[str, float]] = {  # the course, and usual minutes
    "soup": ("soup", 35),
    "broth": ("soup", 60),
    "salad": ("salad", 20),
    "slaw": ("salad", 15),
    "stew": ("main", 90),
    "bake": ("main", 60),
    "pie": ("main", 75),
    "skewers": ("main", 40),
    "rice": ("main", 35),
    "noodles": ("main", 25),
    "parcels": ("starter", 45),
    "fritters": ("starter", 30),
    "dip": ("starter", 15),
    "gratin": ("side", 50),
    "mash": ("side", 30),
}
FAVOURITES: Mapping[str, Sequence[str]] = {  # dishes that a cuisine has more often than others
    "French": ("gratin", "pie"),
    "Greek": ("skewers", "dip"),
    "Indian": ("stew", "rice"),
    "Italian": ("bake", "broth"),
    "Mexican": ("parcels", "salad"),
    "Thai": ("noodles", "soup"),
}
STYLES = (
    "Smoky",
    "Slow",
    "Golden",
    "Crisp",
    "Sunday",
    "Rustic",
    "Quick",
    "Roasted",
    "Spiced",
    "Creamy",
    "Green",
    "Warm",
)
WAYS = ("Cooked", "Simmered", "Roasted", "Tossed", "Braised", "Finished", "Topped", "Served")
ENDINGS = (
    *("good for a crowd", "ready on a weeknight", "even better the next day", "a favourite of our children"),
    *("for the first cold evening", "from a handful of leftovers", "worth the wait", "as my neighbour makes it"),
)


def one(of: Sequence[str], draw: Random) -> str:
    """Draw one of several; `Random.choice` may differ between versions of Python."""
    return of[int(draw() * len(of))]


def seasoning(cuisine: str, draw: Random) -> str:
    where = draw()
    if where < OWN_WORD:
        return one(SEASONINGS[cuisine], draw)
    return one(SEASONINGS[one(list(SEASONINGS), draw)] if where < OWN_WORD + OTHER_WORD else PANTRY, draw)


def recipe(cuisine: str, taken: set[str], draw: Random) -> dict[str, str]:
    """Make one recipe, of a name that no other has; its minutes are blank now and then."""
    while True:
        dish = one(FAVOURITES[cuisine] if draw() < FAVOURITE_DISH else list(DISHES), draw)
        main = one(MAINS, draw)
        name = f"{one(STYLES, draw)} {main} {dish}"
        if name not in taken:
            break
    taken.add(name)
    first, second = seasoning(cuisine, draw), seasoning(cuisine, draw)
    while second == first:
        second = seasoning(cuisine, draw)
    course, usual = DISHES[dish]
    minutes = 5 * max(1, round(usual * math.exp(draw() - 0.5) / 5))
    day = dt.date(2016, 1, 1) + dt.timedelta(days=int(draw() * 3650))
    return {
        "id": name.lower().replace(" ", "-"),
        "name": name,
        "course": course,
        "published": day.isoformat(),
        "minutes": "" if draw() < NO_MINUTES else str(minutes),
        "description": f"{one(WAYS, draw)} with {first} and {second}, {one(ENDINGS, draw)}.",
        "cuisine": cuisine,
    }


def saved_together(cuisines: Sequence[str], draw: Random) -> list[tuple[int, int]]:
    """Draw pairs of recipes; some recipes are saved far more often than others.

    Every recipe is saved with one before it in the table, so that all are connected.
    """
    liked = [(1 - draw()) ** -LIKED for _ in cuisines]

    def partner(i: int, among: range) -> int:
        alike = draw() < SAME_CUISINE
        others = [j for j in among if j != i and not (alike and cuisines[j] != cuisines[i])] or [0]
        left = draw() * sum(liked[j] for j in others)
        for j in others:
            left -= liked[j]
            if left < 0:
                return j
        return others[-1]

    pairs = {(partner(i, range(i)), i) for i in range(1, len(cuisines))}
    while len(pairs) < PAIRS:
        i = int(draw() * len(cuisines))
        j = partner(i, range(len(cuisines)))
        pairs.add((min(i, j), max(i, j)))
    return sorted(pairs)


def main(folder: Path) -> None:
    """Write nodes.csv and edges.csv."""
    draw = random.Random(SEED).random
    taken: set[str] = set()
    recipes = [recipe(one(list(SEASONINGS), draw), taken, draw) for _ in range(RECIPES)]
    pairs = saved_together([row["cuisine"] for row in recipes], draw)
    order = sorted(range(RECIPES), key=[draw() for _ in range(RECIPES)].__getitem__)
    for i in order[LABELLED:]:
        recipes[i]["cuisine"] = ""
    with (folder / "nodes.csv").open("w", encoding="utf-8", newline="") as stream:
        nodes = csv.DictWriter(stream, list(recipes[0]), lineterminator="\n")
        nodes.writeheader()
        nodes.writerows(recipes)
    with (folder / "edges.csv").open("w", encoding="utf-8", newline="") as stream:
        edges = csv.writer(stream, lineterminator="\n")
        edges.writerow(["source", "target"])
        edges.writerows((recipes[i]["id"], recipes[j]["id"]) for i, j in pairs)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
