import type { TenantUse } from '@shellfleet/protocol';
import pLimit from 'p-limit';

/** Sandboxes that are measured at a time. */
const MEASURED_AT_A_TIME = 16;

/** What is measured of a sandbox. A value is absent where this host cannot measure it. */
export interface SandboxUse {
  /** Processor time of all its processes since its start. */
  processorMs?: number | undefined;
  /** Bytes that it has written to the disk of the engine, as measured last. */
  diskBytes?: number | undefined;
}

interface Measurable {
  readonly id: string;
  use?(): Promise<SandboxUse>;
}

interface Counted {
  tenant: string;
  sandbox: Measurable;
  /** Processor time that is not counted again. Undefined until the first measurement of an adopted sandbox. */
  processorMs: number | undefined;
  diskBytes: number;
}

/** Counts what the sessions of each tenant use on this host. */
export class TenantUses {
  readonly #sums: Map<string, Omit<TenantUse, 'diskBytes'>>;
  readonly #sandboxes = new Map<string, Counted>();

  /** `before` has the counts of an earlier process of this host. */
  constructor(before: ReadonlyMap<string, TenantUse> = new Map()) {
    this.#sums = new Map([...before].map(([tenant, { diskBytes: _, ...sums }]) => [tenant, sums]));
  }

  /** Adds the output of a command. */
  addOutput(tenant: string, bytes: number): void {
    this.#sumsOf(tenant).outputBytes += bytes;
  }

  /** Measures a sandbox from now on. What an adopted one used before was counted by the process that had it. */
  async begin(tenant: string, sandbox: Measurable, { isAdopted }: { isAdopted: boolean }): Promise<void> {
    const counted = { tenant, sandbox, processorMs: isAdopted ? undefined : 0, diskBytes: 0 };
    this.#sandboxes.set(sandbox.id, counted);
    if (isAdopted) await this.#measure(counted);
  }

  /** Measures a sandbox for the last time, before it is removed. */
  async end({ id }: Measurable): Promise<void> {
    const counted = this.#sandboxes.get(id);
    if (counted === undefined) return;
    await this.#measure(counted);
    this.#sandboxes.delete(id);
  }

  async measure(): Promise<void> {
    const limit = pLimit(MEASURED_AT_A_TIME);
    await Promise.all([...this.#sandboxes.values()].map((counted) => limit(() => this.#measure(counted))));
  }

  /** Returns the use of each tenant that has ever used anything here. */
  read(): Map<string, TenantUse> {
    const uses = new Map([...this.#sums].map(([tenant, sums]) => [tenant, { ...sums, diskBytes: 0 }]));
    for (const { tenant, diskBytes } of this.#sandboxes.values()) {
      const use = uses.get(tenant) ?? { processorMs: 0, outputBytes: 0, diskBytes: 0 };
      uses.set(tenant, { ...use, diskBytes: use.diskBytes + diskBytes });
    }
    return uses;
  }

  async #measure(counted: Counted): Promise<void> {
    const { processorMs, diskBytes } = await readUse(counted.sandbox);
    if (diskBytes !== undefined) counted.diskBytes = diskBytes;
    if (processorMs === undefined) return;
    const { processorMs: before = processorMs } = counted;
    if (processorMs < before) return;
    this.#sumsOf(counted.tenant).processorMs += processorMs - before;
    counted.processorMs = processorMs;
  }

  #sumsOf(tenant: string): Omit<TenantUse, 'diskBytes'> {
    const sums = this.#sums.get(tenant) ?? { processorMs: 0, outputBytes: 0 };
    this.#sums.set(tenant, sums);
    return sums;
  }
}

/** Measures a sandbox. One that is gone has nothing to measure. */
async function readUse(sandbox: Measurable): Promise<SandboxUse> {
  return (await sandbox.use?.().catch(() => undefined)) ?? {};
}
