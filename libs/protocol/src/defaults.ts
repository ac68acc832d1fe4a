/** Every default of a session, a command, a batch, a terminal and a connection. The schemas take theirs from here; so do `--help` and the reference. */
export const DEFAULTS = {
  session: {
    policy: 'docker',
    env: {},
    cwd: '/workspace',
    user: '1000:1000',
    startupCommands: [],
    shutdownCommands: [],
    commandTimeoutMs: 600_000,
    startupTimeoutMs: 30_000,
    terminationTimeoutMs: 10_000,
    redaction: [],
    secrets: {},
    idleTimeoutMs: 1_800_000,
    maxLifetimeMs: 86_400_000,
    onHostLoss: 'fail',
    hostGraceMs: 60_000,
    priority: 0,
    labels: {},
  },
  /** `output` of a session. */
  output: { maxBytes: 262_144, maxLines: 10_000, keep: 'head-tail', streamBytes: 8_388_608 },
  /** `limits` of a session: those that control groups enforce. The others have no default. */
  limits: { memoryBytes: 536_870_912, cpus: 1, pids: 256 },
  command: { killGraceMs: 1_500, durable: false, retry: 'never', encoding: 'utf8', attachReader: false },
  terminal: { rows: 24, cols: 80, term: 'xterm-256color' },
  connection: { namespace: 'shellfleet', tenant: 'default' },
} as const;

const UNITS: Record<'Ms' | 'Bytes', [size: number, name: string][]> = {
  Ms: [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ],
  Bytes: [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
  ],
};

/** A time or size in the largest unit that it is a whole number of: `10 min`. Empty when the name of the field tells no unit, or the number is small. */
export function describeAmount(field: string, value: unknown): string {
  const unit = field.endsWith('Ms') ? 'Ms' : field.endsWith('Bytes') ? 'Bytes' : undefined;
  if (unit === undefined || typeof value !== 'number') return '';
  const [size, name] = UNITS[unit].find(([size]) => value >= size && value % size === 0) ?? [1, ''];
  return name === '' ? '' : `${value / size} ${name}`;
}

/** A default as text: `600,000`, `'docker'`, `none`. */
export function describeDefault(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en-US');
  if (typeof value === 'object') return 'none';
  return typeof value === 'string' ? `'${value}'` : String(value);
}

/** One default for a person: `commandTimeoutMs`, `600,000 (10 min)`. */
export interface DefaultLine {
  name: string;
  value: string;
}

/** Every default, by what it belongs to. For `--help`. */
export function listDefaults(): Record<keyof typeof DEFAULTS, DefaultLine[]> {
  const lines = (part: Record<string, unknown>): DefaultLine[] =>
    Object.entries(part).map(([name, value]) => {
      const amount = describeAmount(name, value);
      return { name, value: amount === '' ? describeDefault(value) : `${describeDefault(value)} (${amount})` };
    });
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, part]) => [name, lines(part)])) as ReturnType<
    typeof listDefaults
  >;
}
