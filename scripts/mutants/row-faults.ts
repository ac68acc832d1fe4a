import type { RowFault } from './row-faults/row-fault.ts';
import { s0Faults } from './row-faults/s0.ts';
import { s1Faults } from './row-faults/s1.ts';
import { s2Faults } from './row-faults/s2.ts';
import { s3Faults } from './row-faults/s3.ts';
import { s4Faults } from './row-faults/s4.ts';

/** Faults, at most one a row. Rows about documents, or about behaviour that no small change removes, have none. */
export const rowFaults: readonly RowFault[] = [...s0Faults, ...s1Faults, ...s2Faults, ...s3Faults, ...s4Faults];
