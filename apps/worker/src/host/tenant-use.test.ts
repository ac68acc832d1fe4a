import { describe, expect, test } from 'vitest';
import { type SandboxUse, TenantUses } from './tenant-use.ts';

const sandboxOf = (id: string, used: SandboxUse) => ({ id, used, use: async () => ({ ...used }) });
const NEW = { isAdopted: false };

describe('the use of a tenant', () => {
  test('is that of all its sandboxes, and the disk of those that are left', async () => {
    const uses = new TenantUses();
    const one = sandboxOf('1', { processorMs: 5, diskBytes: 100 });
    const two = sandboxOf('2', { processorMs: 7, diskBytes: 200 });
    const other = sandboxOf('3', { processorMs: 1 });
    await uses.begin('a', one, NEW);
    await uses.begin('a', two, NEW);
    await uses.begin('b', other, NEW);
    uses.addOutput('a', 30);
    await uses.measure();
    expect(uses.read()).toEqual(
      new Map([
        ['a', { processorMs: 12, outputBytes: 30, diskBytes: 300 }],
        ['b', { processorMs: 1, outputBytes: 0, diskBytes: 0 }],
      ]),
    );
    one.used.processorMs = 50;
    await uses.end(one);
    await uses.measure();
    expect(uses.read().get('a')).toEqual({ processorMs: 57, outputBytes: 30, diskBytes: 200 });
  });

  test('continues that of an earlier process, without what an adopted sandbox used before', async () => {
    const uses = new TenantUses(new Map([['a', { processorMs: 100, outputBytes: 10, diskBytes: 999 }]]));
    const adopted = sandboxOf('1', { processorMs: 90 });
    await uses.begin('a', adopted, { isAdopted: true });
    adopted.used.processorMs = 95;
    await uses.measure();
    expect(uses.read().get('a')).toEqual({ processorMs: 105, outputBytes: 10, diskBytes: 0 });
  });

  test('has nothing that an adopted sandbox used before, also when all are measured meanwhile', async () => {
    const uses = new TenantUses();
    const adopted = sandboxOf('1', { processorMs: 90 });
    await Promise.all([uses.begin('a', adopted, { isAdopted: true }), uses.measure()]);
    expect(uses.read().get('a')?.processorMs).toBe(0);
  });

  test('stays as it was when a sandbox cannot be measured', async () => {
    const uses = new TenantUses();
    const gone = sandboxOf('1', { processorMs: 4, diskBytes: 8 });
    await uses.begin('a', gone, NEW);
    await uses.begin('a', { id: '2' }, NEW);
    await uses.measure();
    gone.use = async () => {
      throw new Error('gone');
    };
    await uses.end(gone);
    expect(uses.read().get('a')).toEqual({ processorMs: 4, outputBytes: 0, diskBytes: 0 });
  });
});
