import type {
  DisconnectReason,
  OutputStream,
  RefusalReason,
  Shell,
  ShellEnd,
  ShellStart,
  StreamOffsets,
} from './shell.ts';

/** How an entry's turn on the shell ended. `gone`: the connection broke; what became of the entry is to be found out. */
export type TurnEnd =
  | { type: 'ended'; end: ShellEnd }
  | { type: 'refused'; reason: RefusalReason }
  | { type: 'gone'; reason: DisconnectReason };

export type OnOutput = (stream: OutputStream, offset: number, bytes: Uint8Array) => void;

type OnInputTaken = (offset: number, deaf: boolean) => void;

interface Turn {
  entryId: string;
  onOutput: OnOutput;
  onInputTaken: OnInputTaken | undefined;
  end(end: TurnEnd): void;
}

/** One entry at a time on one connection to a shell: start or resume it, and wait for its end. */
export interface ShellTurns {
  readonly shell: Shell;
  readonly connected: boolean;
  start(entry: ShellStart, onOutput: OnOutput, onInputTaken?: OnInputTaken): Promise<TurnEnd>;
  resume(entryId: string, offsets: StreamOffsets, onOutput: OnOutput, onInputTaken?: OnInputTaken): Promise<TurnEnd>;
}

export interface TurnsWatcher {
  /** A fresh shell took the place of one that died between two entries. */
  onShell(shell: { generation: number; reason: string }): void;
  onLate(entryId: string, stream: OutputStream, offset: number, bytes: Uint8Array): void;
  onGone(reason: DisconnectReason): void;
}

export function createShellTurns(shell: Shell, watcher: TurnsWatcher): ShellTurns {
  let turn: Turn | undefined;
  let gone: DisconnectReason | undefined;

  const endTurn = (entryId: string, end: TurnEnd) => {
    if (turn?.entryId !== entryId) return;
    const ending = turn;
    turn = undefined;
    ending.end(end);
  };

  shell.on({
    onOutput(entryId, stream, offset, bytes) {
      if (turn?.entryId === entryId) turn.onOutput(stream, offset, bytes);
    },
    onLate: (entryId, stream, offset, bytes) => watcher.onLate(entryId, stream, offset, bytes),
    onEnd: (entryId, end) => endTurn(entryId, { type: 'ended', end }),
    onInputTaken(entryId, offset, deaf) {
      if (turn?.entryId === entryId) turn.onInputTaken?.(offset, deaf);
    },
    onRefused: (entryId, reason) => endTurn(entryId, { type: 'refused', reason }),
    onShell: (fresh) => watcher.onShell(fresh),
    onDisconnect(reason) {
      gone = reason;
      if (turn !== undefined) endTurn(turn.entryId, { type: 'gone', reason });
      watcher.onGone(reason);
    },
  });

  const begin = (begun: Omit<Turn, 'end'>, act: () => void): Promise<TurnEnd> => {
    if (gone !== undefined) return Promise.resolve({ type: 'gone', reason: gone });
    const ended = Promise.withResolvers<TurnEnd>();
    turn = { ...begun, end: ended.resolve };
    act();
    return ended.promise;
  };

  return {
    shell,
    get connected() {
      return gone === undefined;
    },
    start: (entry, onOutput, onInputTaken) =>
      begin({ entryId: entry.entryId, onOutput, onInputTaken }, () => shell.start(entry)),
    resume: (entryId, offsets, onOutput, onInputTaken) =>
      begin({ entryId, onOutput, onInputTaken }, () => shell.resume(entryId, offsets)),
  };
}
