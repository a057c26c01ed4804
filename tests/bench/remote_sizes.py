async def load(place, rounds):
    pass


async def start(place, rounds):
    pass


async def waiting(place):
    pass
