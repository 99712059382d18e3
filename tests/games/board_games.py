"""Small games of our own, each right, and with planted faults in the function of their images."""

from __future__ import annotations

import numpy as np

STEPS = [(-1, 0), (0, 1), (1, 0), (0, -1)]  # up, right, down, left


class Lines:
    """Tic-tac-toe on n x n, with a pass that is legal on a full board only."""

    def __init__(self, n=3):
        self.n = n

    def getInitBoard(self):
        return np.zeros((self.n, self.n), int)

    def getActionSize(self):
        return self.n**2 + 1

    def getNextState(self, board, player, action):
        if action < self.n**2:
            board[divmod(action, self.n)] = player
        return board, -player

    def getValidMoves(self, board, player):
        free = (board == 0).ravel().tolist()
        return np.array([*free, not any(free)], int)

    def lines(self, stones):
        return [*stones, *stones.T, stones.diagonal(), stones[:, ::-1].diagonal()]

    def getGameEnded(self, board, player):
        for who in (1, -1):
            if any(line.all() for line in self.lines(board == who)):
                return 1 if who == player else -1
        return 1e-4 if board.all() else 0

    def getCanonicalForm(self, board, player):
        return board * player

    def getSymmetries(self, board, pi):
        cells = np.reshape(pi[:-1], board.shape)
        images = []
        for k in range(4):
            for flip in (False, True):
                b, p = np.rot90(board, k), np.rot90(cells, k)
                images.append((np.fliplr(b), np.fliplr(p)) if flip else (b, p))
        return [(b, [*p.ravel().tolist(), pi[-1]]) for b, p in images]


class Columns:
    """Stones fall down columns; three in a row, column or diagonal win."""

    sides = staticmethod(lambda stones: (stones, stones[:, ::-1]))

    def __init__(self, rows=4, columns=6):
        self.shape = rows, columns

    def getInitBoard(self):
        return np.zeros(self.shape, int)

    def getActionSize(self):
        return self.shape[1]

    def getNextState(self, board, player, action):
        board[np.flatnonzero(board[:, action] == 0)[-1], action] = player
        return board, -player

    def getValidMoves(self, board, player):
        return (board[0] == 0).astype(int)

    def getGameEnded(self, board, player):
        for who in (1, -1):
            m = board == who
            found = (m[:, :-2] & m[:, 1:-1] & m[:, 2:]).any() or (m[:-2] & m[1:-1] & m[2:]).any()
            for side in self.sides(m):
                found |= (side[:-2, :-2] & side[1:-1, 1:-1] & side[2:, 2:]).any()
            if found:
                return 1 if who == player else -1
        return 1e-4 if board.all() else 0

    def getCanonicalForm(self, board, player):
        return board * player

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[:, ::-1], pi[::-1])]


class Movers:
    """Stones step up, right, down or left onto free cells; who cannot move loses, five plies draw."""

    def __init__(self, n=3):
        self.n = n

    def getInitBoard(self):
        board = np.zeros((2, self.n, self.n), int)  # stones, and how many plies were played
        board[0, 0, 0] = board[0, -1, -1] = 1
        board[0, 0, -1] = board[0, -1, 0] = -1
        return board

    def getActionSize(self):
        return 4 * self.n**2

    def getNextState(self, board, player, action):
        (i, j), (di, dj) = divmod(action // 4, self.n), STEPS[action % 4]
        board[0, i + di, j + dj], board[0, i, j] = player, 0
        board[1] += 1
        return board, -player

    def getValidMoves(self, board, player):
        legal = np.zeros((self.n, self.n, 4), int)
        for i, j in np.argwhere(board[0] == player):
            for k, (di, dj) in enumerate(STEPS):
                if 0 <= i + di < self.n and 0 <= j + dj < self.n and board[0, i + di, j + dj] == 0:
                    legal[i, j, k] = 1
        return legal.ravel()

    def getGameEnded(self, board, player):
        if not self.getValidMoves(board, player).any():
            return -1
        return 1e-4 if board[1, 0, 0] >= 5 else 0

    def getCanonicalForm(self, board, player):
        return board * np.array([player, 1])[:, None, None]

    directions = staticmethod(lambda p, k: p[..., [(d + k) % 4 for d in range(4)]])

    def getSymmetries(self, board, pi):
        moves = np.reshape(pi, (self.n, self.n, 4))
        return [(np.rot90(board, k, (1, 2)), self.directions(np.rot90(moves, k), k).ravel().tolist()) for k in range(4)]


class LastMove(Lines):
    """`Lines` with a second plane that shows the last move."""

    def getInitBoard(self):
        return np.zeros((2, self.n, self.n), int)

    def getNextState(self, board, player, action):
        board[0], _ = super().getNextState(board[0], player, action)
        board[1] = 0
        if action < self.n**2:
            board[1][divmod(action, self.n)] = 1
        return board, -player

    def getValidMoves(self, board, player):
        return super().getValidMoves(board[0], player)

    def getGameEnded(self, board, player):
        return super().getGameEnded(board[0], player)

    def getCanonicalForm(self, board, player):
        return board * np.array([player, 1])[:, None, None]

    turned = staticmethod(lambda plane, k: np.rot90(plane, k))

    def getSymmetries(self, board, pi):
        cells = np.reshape(pi[:-1], (self.n, self.n))
        return [
            (
                np.stack([np.rot90(board[0], k), self.turned(board[1], k)]),
                [*np.rot90(cells, k).ravel().tolist(), pi[-1]],
            )
            for k in range(4)
        ]


class Cube(Lines):
    """A move a cell of 3 x 3 x 3; six stones end the game."""

    def getInitBoard(self):
        return np.zeros((3, 3, 3), int)

    def getActionSize(self):
        return 27

    def getNextState(self, board, player, action):
        board.ravel()[action] = player
        return board, -player

    def getValidMoves(self, board, player):
        return (board == 0).astype(int).ravel()

    def getGameEnded(self, board, player):
        return 1e-4 if (board != 0).sum() >= 6 else 0

    board_axis = staticmethod(lambda board: np.flip(board, 1))

    def getSymmetries(self, board, pi):
        cells = np.reshape(pi, (3, 3, 3))
        return [(board, pi), (self.board_axis(board), np.flip(cells, 1).ravel().tolist())]
