export { abortable } from './abortable.ts';
export { CallOrder, KeyedCallOrder } from './call-order.ts';
export { Notifier, type WaitOptions } from './notifier.ts';
export { type Repetition, repeat } from './repeat.ts';
export { SharedRounds } from './shared-rounds.ts';
export { SharedTimer } from './shared-timer.ts';
