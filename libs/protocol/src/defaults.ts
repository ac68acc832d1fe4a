/** Every default. The schemas, `--help` and the reference read them from here. */
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
    redactFormats: true,
    secrets: {},
    idleTimeoutMs: 1_800_000,
    maxLifetimeMs: 86_400_000,
    approvalTimeoutMs: 600_000,
    onHostLoss: 'fail',
    keepOnFailure: false,
    hostGraceMs: 60_000,
    priority: 0,
    labels: {},
    hosts: {},
  },
  /** `output` of a session. */
  output: { maxBytes: 262_144, maxLines: 10_000, keep: 'head-tail', streamBytes: 8_388_608 },
  /** Those `limits` of a session that control groups enforce. Other limits have no default. */
  limits: { memoryBytes: 536_870_912, cpus: 1, pids: 256 },
  command: {
    killGraceMs: 1_500,
    durable: false,
    retry: 'never',
    encoding: 'utf8',
    attachReader: false,
    traceparent: false,
  },
  batch: { concurrency: 32 },
  /** `retries` of a batch. */
  batchRetries: { infra: 2, command: 0 },
  terminal: { rows: 24, cols: 80, term: 'xterm-256color' },
  connection: { namespace: 'shellfleet', tenant: 'default' },
} as const;
