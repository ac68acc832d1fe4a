// The shell without a worker, for the tests and the benchmark.
export { claimKeeper, FencedOff } from './keeper-connection.ts';
export type * from './keeper-operation.ts';
export { openKeeperShell } from './keeper-shell.ts';
export type * from './shell.ts';
export type * from './shell-files.ts';
export type * from './shell-terminals.ts';
export { attachTransport } from './transport/attach.ts';
export { type KeeperListener, listenForKeeper } from './transport/socket.ts';
export { KeeperDialer } from './transport/tcp.ts';
export type { Transport } from './transport/transport.ts';
