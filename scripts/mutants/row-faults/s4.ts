import type { RowFault } from './row-fault.ts';

export const s4Faults: readonly RowFault[] = [];
