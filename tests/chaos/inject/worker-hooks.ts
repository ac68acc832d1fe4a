// Module that is loaded into a worker. On SIGUSR2 it reads an order: the clock jumps, or the event loop stands still.
import { readFileSync } from 'node:fs';

export interface HookOrder {
  /** Difference between the clock of this process and that of the machine. */
  clockOffsetMs?: number;
  /** Time for which the event loop stands still; other threads go on. */
  stallMs?: number;
}

let clockOffsetMs = 0;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...args: []) {
    if (args.length === 0) super(RealDate.now() + clockOffsetMs);
    else super(...args);
  }

  static override now(): number {
    return RealDate.now() + clockOffsetMs;
  }
} as DateConstructor;

process.on('SIGUSR2', () => {
  const order: HookOrder = JSON.parse(readFileSync(process.env.SHELLFLEET_CHAOS_ORDER ?? '', 'utf8'));
  clockOffsetMs = order.clockOffsetMs ?? clockOffsetMs;
  if (order.stallMs !== undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.stallMs);
});
