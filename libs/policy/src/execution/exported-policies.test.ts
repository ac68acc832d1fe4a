import { POLICY_NAMES } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import * as exported from '../index.ts';

describe('the exported policies', () => {
  // S0-51
  test('are the functions that plan sandboxes, one for each policy', () => {
    const plans = Object.keys(exported).filter((name) => name.startsWith('plan'));
    expect(plans.map((name) => name.slice('plan'.length).toLowerCase()).sort()).toEqual([...POLICY_NAMES].sort());
  });
});
