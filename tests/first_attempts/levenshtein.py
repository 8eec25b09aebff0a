"""Edit distance of one query to many padded words of bytes."""
import torch
from jaxtyping import Int32, UInt8
from torch import Tensor

from py2cu import Index, kernel

MAX_QUERY = 32


@kernel
def levenshtein(
    i: Index["n"],
    query: UInt8[Tensor, "m"],
    words: UInt8[Tensor, "n width"],
    lengths: Int32[Tensor, "n"],
    out: Int32[Tensor, "n"],
):
    (m,) = query.shape
    assert m <= MAX_QUERY
    row = [0] * (MAX_QUERY + 1)
    for j in range(m + 1):
        row[j] = j
    word = words[i]
    for k in range(lengths[i]):
        diagonal = row[0]
        row[0] = k + 1
        for j, ch in enumerate(query):
            cost = 0 if ch == word[k] else 1
            above = row[j + 1]
            row[j + 1] = min(above + 1, row[j] + 1, diagonal + cost)
            diagonal = above
    out[i] = row[m]


KERNEL = levenshtein


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        new = [i]
        for j, y in enumerate(b, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (x != y)))
        row = new
    return row[-1]


def reference(query, words, lengths):
    q = query.tolist()
    return torch.tensor(
        [distance(w[:n], q) for w, n in zip(words.tolist(), lengths.tolist())], dtype=torch.int32
    )


def cases():
    words = ["kitten", "sitting", "mitten", "", "knitting", "bitten by"]
    width = max(map(len, words))
    data = torch.tensor([list(w.ljust(width).encode()) for w in words], dtype=torch.uint8)
    lengths = torch.tensor([len(w) for w in words], dtype=torch.int32)
    for q in ("kitten", "sit"):
        yield dict(query=torch.tensor(list(q.encode()), dtype=torch.uint8), words=data, lengths=lengths)
