import { POLICY_NAMES } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import * as exported from '../index.ts';

test('S0-51: every policy is exported, as the function that plans its sandboxes', () => {
  const plans = Object.keys(exported).filter((name) => name.startsWith('plan'));
  expect(plans.map((name) => name.slice('plan'.length).toLowerCase()).sort()).toEqual([...POLICY_NAMES].sort());
});
