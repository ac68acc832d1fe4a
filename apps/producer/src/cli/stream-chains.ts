import type { AuditChainName, Fleet } from '@shellfleet/client';
import { type AuditHead, type AuditRecord, parseAuditChain, toAuditChain } from '@shellfleet/protocol';
import {
  AuditCheck,
  type AuditFinding,
  auditKeys,
  createSealer,
  openAuditRecords,
  RemovalMarks,
  type VerifiedChain,
} from '@shellfleet/sealing';

// Reads the audit that hosts keep in Redis, chain by chain.

/** A head that `audit heads` printed, with the time of its record. */
export interface KeptStreamHead extends AuditChainName, AuditHead {
  at: string;
}

interface StreamFinding extends AuditFinding {
  host: string;
  tenant: string;
  /** Process that wrote the chain. */
  boot?: string;
}

/** A chain as the stream has it. */
interface StreamChain extends VerifiedChain {
  name: AuditChainName;
  isClosed: boolean;
  /** Time of the last record. */
  at: string | undefined;
}

export interface VerifiedStream {
  namespace: string;
  findings: StreamFinding[];
  records: number;
  chains: StreamChain[];
}

/** Verifies all chains of the audit in Redis against `kept` heads, or else those that Redis has. */
export async function verifyStream(
  fleet: Fleet,
  sealKeys: readonly string[],
  kept?: readonly KeptStreamHead[],
): Promise<VerifiedStream> {
  // A record that is added or removed meanwhile is no finding: each head was read before the records, and each mark
  // after them.
  const before = await fleet.auditChains();
  const heads = kept ?? before.chains.map(({ chain, head }) => ({ ...chain, ...head }));
  const reading = new Reading(before.namespace, sealKeys, heads);
  for await (const entry of fleet.auditRecords()) reading.add(entry);
  const after = await fleet.auditChains();
  const stateOf = new Map([...before.chains, ...after.chains].map((state) => [toAuditChain(state.chain), state]));
  const isOpen = new Set(
    [...before.chains, ...after.chains].filter((state) => state.isOpen).map(({ chain }) => toAuditChain(chain)),
  );
  const marks = new RemovalMarks(sealKeys, before.namespace);
  const goneBefore = marks.readStream(after.streamMark);
  for (const { at, n, ...chain } of kept ?? []) if (Date.parse(at) < goneBefore) reading.acceptRemoved(chain, n);
  const chains = reading.end((chain) => marks.readChain(chain, stateOf.get(toAuditChain(chain))?.mark ?? '').through);
  const findings = [...reading.findings];
  for (const { name, isClosed, records, findings: found } of chains) {
    const id = toAuditChain(name);
    const add = (type: AuditFinding['type'], message: string) =>
      findings.push({ type, ...name, where: `the audit in Redis, process ${name.boot}`, message });
    for (const finding of found) findings.push({ ...finding, ...name, where: whereIn(finding.where, name) });
    const state = stateOf.get(id);
    if (state === undefined && kept === undefined) add('missing', 'the head of this chain is missing');
    const { early } = marks.readChain(name, state?.mark ?? '');
    if (early > 0) add('removed-early', `${early} records were removed before their time, because there were too many`);
    if (records > 0 && !isClosed && !isOpen.has(id))
      add('unclosed', 'its process was killed, or did not reach Redis when it ended: its last records may be missing');
  }
  return {
    namespace: before.namespace,
    findings,
    records: chains.reduce((sum, { records }) => sum + records, 0),
    chains,
  };
}

const whereIn = (where: string, { boot }: AuditChainName) =>
  where === '' ? `the audit in Redis, process ${boot}` : `entry ${where}, process ${boot}`;

/** The chains of a stream, whose entries are added in their order. */
class Reading {
  readonly findings: StreamFinding[] = [];
  readonly #namespace: string;
  readonly #sealKeys: readonly string[];
  readonly #sealer: ReturnType<typeof createSealer>;
  readonly #heads = new Map<string, AuditHead[]>();
  readonly #chains = new Map<string, { name: AuditChainName; check: AuditCheck; last: AuditRecord | undefined }>();

  constructor(namespace: string, sealKeys: readonly string[], heads: readonly (AuditChainName & AuditHead)[]) {
    this.#namespace = namespace;
    this.#sealKeys = sealKeys;
    this.#sealer = createSealer(sealKeys);
    for (const { host, boot, tenant, n, mac } of heads) {
      const id = toAuditChain({ host, boot, tenant });
      this.#heads.set(id, [...(this.#heads.get(id) ?? []), { n, mac }]);
    }
    // Chains of which nothing is left have heads too.
    for (const { host, boot, tenant } of heads) this.#of({ host, boot, tenant });
  }

  add({ id, chain, first, sealed }: { id: string; chain: string; first: number; sealed: string }): void {
    const name = parseAuditChain(chain);
    const lines = name && openAuditRecords(this.#sealer, this.#namespace, { chain: name, first, sealed });
    if (name === undefined || lines === undefined) {
      this.findings.push({
        ...{ type: 'altered', host: '*', tenant: '*', ...name, where: `entry ${id}` },
        message: 'the entry was altered, moved, or sealed with a key that is not given',
      });
      return;
    }
    const { check } = this.#of(name);
    for (const [index, line] of lines.entries()) check.read(line, `${id}/${index + 1}`);
  }

  acceptRemoved(chain: AuditChainName, through: number): void {
    this.#of(chain).check.acceptRemoved(through);
  }

  end(removedOf: (chain: AuditChainName) => number): StreamChain[] {
    return [...this.#chains.values()].map(({ name, check, last }) => {
      check.acceptRemoved(removedOf(name));
      return { name, ...check.end(), isClosed: check.isClosed, at: last?.at };
    });
  }

  #of(name: AuditChainName) {
    const id = toAuditChain(name);
    const known = this.#chains.get(id);
    if (known !== undefined) return known;
    const keys = auditKeys(this.#sealKeys, { namespace: this.#namespace, ...name });
    const of: { name: AuditChainName; check: AuditCheck; last: AuditRecord | undefined } = {
      name,
      last: undefined,
      check: new AuditCheck(keys, this.#heads.get(id) ?? [], (record) => {
        of.last = record;
      }),
    };
    this.#chains.set(id, of);
    return of;
  }
}
