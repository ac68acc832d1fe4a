import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from './config.ts';

const directory = mkdtempSync(join(tmpdir(), 'shellfleet-config-'));
const path = join(directory, 'config.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

function readFile(text: string) {
  writeFileSync(path, text);
  return readConfig({ SHELLFLEET_CONFIG: path }).file;
}

/** Returns a section `kubernetes` with the fields, and a namespace before them. */
function pods(fields: string): string {
  return fields.includes('namespace:') ? `kubernetes: { ${fields} }` : `kubernetes: { namespace: shells, ${fields} }`;
}

const DEFAULTS = {
  rules: [],
  allow: {
    modes: ['read-only', 'workspace-write'],
    networks: ['restricted'],
    hosts: [],
    privateAddresses: [],
    runtimes: [],
    unchecked: [],
  },
  approvals: { pendingPerTenant: 10_000 },
  audit: { retention: 90 * 86_400_000, commands: true, maxBytes: 2 ** 28 },
  labels: {},
  images: { prepull: [] },
  pools: [],
  codex: { configOverrides: {} },
};

describe('the configuration file', () => {
  test('has defaults for every section when it is missing or empty', () => {
    expect(readConfig({}).file).toEqual(DEFAULTS);
    expect(readFile('# nothing yet\n')).toEqual(DEFAULTS);
  });

  test('contains what sessions may ask for, and which rules apply', () => {
    const text = `
rules: [/etc/shellfleet/rules.yaml]
allow:
  modes: [read-only, danger-full-access]
  networks: [restricted, limited]
  hosts: ['*.Example.org', 'registry.npmjs.org:443']
  privateAddresses: [10.1.0.0/16]
  runtimes: [runsc]
  unchecked: [terminals]
approvals:
  pendingPerTenant: 50
audit:
  retention: 30d
  commands: false
  store: redis
  maxBytes: 2000000
labels: { gpu: yes, zone: eu/a }
images:
  maxBytes: 5000
  prepull: ['registry.example/base:1']
  logins: /etc/shellfleet/registries.json
pools:
  - { max: 4 }
  - { image: 'python:3.13', limits: { pids: 64 }, min: 1, max: 2 }
codex:
  configOverrides: { model: of-the-host }
`;
    expect(readFile(text)).toEqual({
      rules: ['/etc/shellfleet/rules.yaml'],
      allow: {
        modes: ['read-only', 'danger-full-access'],
        networks: ['restricted', 'limited'],
        hosts: ['*.example.org', 'registry.npmjs.org:443'],
        privateAddresses: ['10.1.0.0/16'],
        runtimes: ['runsc'],
        unchecked: ['terminals'],
      },
      approvals: { pendingPerTenant: 50 },
      audit: { retention: 30 * 86_400_000, commands: false, store: 'redis', maxBytes: 2_000_000 },
      labels: { gpu: 'yes', zone: 'eu/a' },
      images: { maxBytes: 5_000, prepull: ['registry.example/base:1'], logins: '/etc/shellfleet/registries.json' },
      pools: [
        { image: 'default', policy: 'docker', limits: {}, network: 'restricted', min: 0, max: 4 },
        { image: 'python:3.13', policy: 'docker', limits: { pids: 64 }, network: 'restricted', min: 1, max: 2 },
      ],
      codex: { configOverrides: { model: 'of-the-host' } },
    });
  });

  test.each([
    [
      'rulez: []',
      "line 1: must have only these sections: rules, allow, escalation, approvals, keys, audit, labels, images, pools, codex, kubernetes; it has the unknown field 'rulez'",
    ],
    [
      'tenants: [{ name: builds }]',
      'line 1: tenants belongs to the fleet, not to one host: write it with `shellfleet config apply FILE`',
    ],
    ['images:\n  maxBytes: 5g', 'line 2: images.maxBytes must be a whole number of bytes'],
    ['labels:\n  gpu: true', 'line 2: labels.gpu must be a string'],
    ['labels:\n  gpu: ""', 'line 2: labels.gpu must have a name and a value of 1 to 63 of A-Z'],
    ['pools: 3', 'line 1: pools must be a list of pools'],
    ['pools:\n  - { max: 1, min: 2 }', 'line 2: pools[0].min must be at most max'],
    ['pools:\n  - { max: 1, policy: host }', "line 2: pools[0].policy must be 'docker' or 'kubernetes'"],
    ['pools:\n  - { max: 1, network: limited }', "line 2: pools[0].network must be 'restricted' or 'full'"],
    [
      'pools: [{ max: 1, image: My Image }]',
      'line 1: pools[0].image is not an image name (registry/name:tag or name@sha256:digest)',
    ],
    ['images: { prepull: base }', 'line 1: images.prepull must be a list of image names'],
    [
      'images:\n  prepull: ["a b"]',
      'line 2: images.prepull[0] is not an image name (registry/name:tag or name@sha256:digest)',
    ],
    [
      'pools: [{ max: 1 }, { max: 2 }]',
      'line 1: pools must have no two pools with the same policy, image, limits and network',
    ],
    ['rules: rules.yaml', 'line 1: rules must be a list of files'],
    ['rules:\n  - rules.yaml', 'line 2: rules[0] must be an absolute path'],
    ['allow:\n  modes: [none]', 'line 2: allow.modes[0] must be one of read-only, workspace-write'],
    ['allow:\n  hosts: [10.0.0.1]', 'line 2: allow.hosts[0] must be a name, not an address'],
    ['allow:\n  privateAddresses:\n    - 10.0.0.0', 'line 3: allow.privateAddresses[0] must be a range of addresses'],
    ['allow: {', 'line 1: '],
    [
      'codex:\n  configOverrides: { sandbox_mode: read-only }',
      'line 2: codex.configOverrides must not name sandbox_mode',
    ],
    ['codex:\n  configOverrides: { "a b": 1 }', 'line 2: codex.configOverrides'],
    ['rules: []\nrules: []', 'line 2: Map keys must be unique'],
  ])('refuses %j with the file, line, field and allowed values', (text, message) => {
    expect(() => readFile(text)).toThrow(ConfigError);
    expect(() => readFile(text)).toThrow(`SHELLFLEET_CONFIG: ${path}, ${message}`);
  });

  test('refuses invalid keys, keys without an owner, and keys for both roles (case 67)', () => {
    const publicKey = generateKeyPairSync('ed25519')
      .publicKey.export({ format: 'der', type: 'spki' })
      .toString('base64');
    const ofRsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'der', type: 'spki' });
    const read = (key: string, more = '') =>
      readFile(`keys:\n  producers:\n    - { id: ci, tenants: [t], publicKey: ${key} }\n${more}`).keys;
    expect(read(publicKey)).toMatchObject({ producers: [{ id: 'ci', tenants: ['t'] }], approvers: [] });
    for (const wrong of ['none', ofRsa.toString('base64')])
      expect(() => read(wrong)).toThrow(
        'line 3: keys.producers[0].publicKey must be an Ed25519 public key as PEM or base64',
      );
    const approver = (fields: string) => `  approvers:\n    - { ${fields} }`;
    expect(() => read(publicKey, approver(`id: ada, tenants: [t], publicKey: ${publicKey}`))).toThrow(
      'line 5: keys.approvers[0].publicKey is listed twice; a key has one owner, and is either a producer’s or an approver’s',
    );
    expect(() => read(publicKey, approver(`id: ada, tenants: [], publicKey: ${publicKey}`))).toThrow(
      "must name a tenant, or '*'",
    );
    expect(() => read(publicKey, approver(`tenants: [t], publicKey: ${publicKey}`))).toThrow(
      'keys.approvers[0].id must be a string',
    );
    expect(() => read(publicKey, '  alg: none')).toThrow('it has the unknown field');
  });

  test.each<[string, NodeJS.ProcessEnv, string]>([
    ['{ max: 1, policy: kubernetes }', {}, 'they need the policy kubernetes, which this host does not offer'],
    ['{ max: 1 }', { SHELLFLEET_POLICIES: 'host' }, 'they need the policy docker, which this host does not offer'],
    ['{ max: 1 }', { SHELLFLEET_UIDS: '5000-5999' }, 'with SHELLFLEET_UIDS each sandbox is made for its session'],
    ['{ max: 1, network: full }', {}, "allow.networks does not list 'full'"],
    ['{ min: 3, max: 3 }', {}, 'together they keep at least 3 sandboxes, and this host has 2 slots'],
  ])('refuses the pool %s that the host cannot have with %j', (pool, env, problem) => {
    writeFileSync(path, `pools: [${pool}]`);
    const read = () => readConfig({ SHELLFLEET_CONFIG: path, SHELLFLEET_SLOTS: '2', ...env });
    expect(read).toThrow(new ConfigError(`SHELLFLEET_CONFIG: pools: ${problem}`));
  });

  test('names a missing file in the error', () => {
    expect(() => readConfig({ SHELLFLEET_CONFIG: join(directory, 'absent.yaml') })).toThrow(
      `SHELLFLEET_CONFIG: ${join(directory, 'absent.yaml')} cannot be read: ENOENT`,
    );
  });

  // S3-25
  test('contains the wider sandbox, and refuses one that no session could have', () => {
    const read = (text: string, env: NodeJS.ProcessEnv = {}) => {
      writeFileSync(path, text);
      return readConfig({ SHELLFLEET_CONFIG: path, ...env }).file.escalation;
    };
    const mounting = { SHELLFLEET_WORKSPACES: '/srv/workspaces' };
    expect(read('escalation:\n  network: full', mounting)).toEqual({ network: 'full' });
    expect(read('escalation: {mode: workspace-write}', { SHELLFLEET_POLICIES: 'bubblewrap' })).toEqual({
      mode: 'workspace-write',
    });
    const refused: [string, NodeJS.ProcessEnv, string][] = [
      ['escalation: {}', mounting, 'line 1: escalation must name a mode, a network or both'],
      ['escalation: {to: full}', mounting, 'line 1: escalation must have only these fields: mode, network'],
      ['escalation: {network: all}', mounting, 'line 1: escalation.network must be one of restricted, limited, full'],
      ['escalation: {mode: read-only}', mounting, 'SHELLFLEET_CONFIG: escalation: is not wider'],
      ['escalation: {network: limited}', mounting, "SHELLFLEET_CONFIG: escalation: network 'limited' reaches only"],
      // Without a workspace a container shares no files with another.
      ['escalation: {network: full}', {}, 'SHELLFLEET_CONFIG: escalation: no policy of this host'],
    ];
    for (const [text, env, message] of refused) {
      expect(() => read(text, env)).toThrow(ConfigError);
      expect(() => read(text, env)).toThrow(message);
    }
  });

  test('contains the cluster and its Pods, with the usual settings of the rest', () => {
    const text = 'kubernetes: { namespace: shells, keeper: { image: registry.example/keeper:1 } }';
    expect(readFile(text).kubernetes).toEqual({
      ...{ namespace: 'shells', api: {}, port: 7_443, keeper: { image: 'registry.example/keeper:1', volume: 'init' } },
      ...{ pullPolicy: 'IfNotPresent', pullSecrets: [], nodeSelector: {}, tolerations: [], runtimeClasses: [] },
      ...{ resources: [], userNamespaces: false, unenforced: [], probes: [] },
      workspace: { type: 'emptyDir', sizeBytes: 10 * 2 ** 30 },
      ephemeralStorageBytes: 10 * 2 ** 30,
    });
  });

  test.each([
    ['kubernetes: {}', 'kubernetes.namespace must be a string'],
    [pods(''), 'kubernetes.keeper must have only these fields: image, volume'],
    [pods('keeper: { image: k, volume: disk }'), 'kubernetes.keeper.volume must be init or image'],
    [pods('keeper: { image: k }, namespace: A'), 'kubernetes.namespace must be a name of Kubernetes'],
    [pods('keeper: { image: k }, api: { server: "http://x" }'), 'kubernetes.api.server must be an https:// URL'],
    [pods('keeper: { image: k }, api: { tokenFile: token }'), 'kubernetes.api.tokenFile must be an absolute path'],
    [pods('keeper: { image: k }, port: 0'), 'kubernetes.port must be a port'],
    [pods('keeper: { image: k }, workspace: { type: nfs }'), 'kubernetes.workspace.type must be emptyDir,'],
    [pods('keeper: { image: k }, workspace: { sizeBytes: 1 }'), 'kubernetes.workspace.sizeBytes must be at least'],
    [pods('keeper: { image: k }, tolerations: [{ effect: No }]'), 'kubernetes.tolerations[0].effect must be an effect'],
    [pods('keeper: { image: k }, resources: [cpu]'), 'kubernetes.resources[0] must be a name such as'],
    [pods('keeper: { image: k }, unenforced: [all]'), 'kubernetes.unenforced[0] must be one of network, pids,'],
    [pods('keeper: { image: k }, probes: [api]'), 'kubernetes.probes[0] must be host:port'],
    [pods('keeper: { image: k }, podPidsLimit: 0'), 'kubernetes.podPidsLimit must be positive'],
  ])('refuses %j', (text, message) => {
    expect(() => readFile(text)).toThrow(message);
  });

  test('finds the API server of the cluster of the worker unless it names one', () => {
    const inCluster = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const apiOf = (more: string, env: NodeJS.ProcessEnv) => {
      writeFileSync(path, pods(`keeper: { image: k }${more}`));
      return readConfig({ SHELLFLEET_CONFIG: path, ...env }).kubernetes?.api;
    };
    const files = '/var/run/secrets/kubernetes.io/serviceaccount';
    expect(apiOf('', inCluster)).toEqual({
      ...{ server: 'https://10.96.0.1:443', caFile: `${files}/ca.crt`, tokenFile: `${files}/token` },
    });
    expect(apiOf('', { KUBERNETES_SERVICE_HOST: 'fd00::1' })?.server).toBe('https://[fd00::1]:443');
    expect(apiOf(', api: { server: "https://api.example:6443" }', inCluster)).toEqual({
      server: 'https://api.example:6443',
    });
    expect(apiOf('', {})).toBeUndefined();
  });

  test.each([
    ['allow: { policies: [kubernetes] }', {}, 'the policy kubernetes needs the section kubernetes'],
    [pods('keeper: { image: k }'), {}, 'kubernetes.api.server: is needed, because this worker is no Pod'],
    [pods('keeper: { image: k }'), { SHELLFLEET_UIDS: '200000-201000' }, 'SHELLFLEET_UIDS has no meaning for Pods'],
    [
      `allow: { networks: [limited] }\n${pods('keeper: { image: k }')}`,
      { KUBERNETES_SERVICE_HOST: '10.96.0.1' },
      "kubernetes.egress: is needed, because allow.networks lists 'limited'",
    ],
  ])('refuses under the policy kubernetes %j with %j', (text, env, message) => {
    writeFileSync(path, text);
    const policies = text.includes('policies') ? {} : { SHELLFLEET_POLICIES: 'kubernetes' };
    const slots = { SHELLFLEET_SLOTS: '10' };
    expect(() => readConfig({ SHELLFLEET_CONFIG: path, ...policies, ...slots, ...env })).toThrow(message);
  });

  test('gives a worker that makes only Pods 500 slots', () => {
    writeFileSync(path, pods('keeper: { image: k }'));
    const env = { SHELLFLEET_CONFIG: path, SHELLFLEET_POLICIES: 'kubernetes', KUBERNETES_SERVICE_HOST: '10.96.0.1' };
    expect(readConfig(env).slots).toBe(500);
    expect(readConfig({ ...env, SHELLFLEET_SLOTS: '7' }).slots).toBe(7);
  });

  test('keeps the audit of a worker of Pods in Redis, without a sink', () => {
    const sink = { SHELLFLEET_AUDIT_SINK: 'file:///var/log/audit' };
    writeFileSync(path, pods('keeper: { image: k }'));
    const env = { SHELLFLEET_CONFIG: path, KUBERNETES_SERVICE_HOST: '10.96.0.1' };
    expect(readConfig({ ...env, SHELLFLEET_POLICIES: 'kubernetes' }).auditStore).toBe('redis');
    expect(readConfig({ ...env, SHELLFLEET_POLICIES: 'kubernetes,docker' }).auditStore).toBe('file');
    expect(() => readConfig({ ...env, ...sink, SHELLFLEET_POLICIES: 'kubernetes' })).toThrow(
      'SHELLFLEET_AUDIT_SINK copies files, and this audit is in Redis (audit.store)',
    );
  });

  test('refuses policies or users that are set in the file and by variables', () => {
    const text = 'allow: { policies: [docker, bubblewrap], users: [image] }';
    writeFileSync(path, text);
    expect(readConfig({ SHELLFLEET_CONFIG: path })).toMatchObject({
      policies: ['docker', 'bubblewrap'],
      users: ['image'],
    });
    expect(() => readConfig({ SHELLFLEET_CONFIG: path, SHELLFLEET_POLICIES: 'docker' })).toThrow(
      'SHELLFLEET_POLICIES and allow.policies of SHELLFLEET_CONFIG are both set: keep one',
    );
    expect(() => readFile('allow: { policies: [docker, podman] }')).toThrow(
      "line 1: allow.policies[1] knows 'docker', 'host'",
    );
    expect(() => readFile('allow: { policies: [] }')).toThrow('allow.policies must name a policy');
    expect(() => readFile('allow: { users: [admin] }')).toThrow("allow.users[0] knows 'root' and 'image'");
  });

  test('contains the webhook and its secret, and no error names either', () => {
    const secret = 's3cret'.repeat(6);
    const secretFile = join(directory, 'secret');
    writeFileSync(secretFile, `${secret}\n`);
    const short = join(directory, 'short');
    writeFileSync(short, 's3cret\n');
    const read = (url: string, file = secretFile, more = '') =>
      readFile(`approvals:\n  webhook:\n    url: ${url}\n    secretFile: ${file}${more}`).approvals.webhook;
    for (const url of [
      'https://u:p@hooks.example/T0KEN',
      'http://localhost:8080/',
      'http://127.0.0.1/',
      'http://[::1]/',
    ])
      expect(read(url)).toEqual({ url: new URL(url), secret });
    expect(read('http://hooks.internal/', secretFile, '\n    plainHosts: [hooks.internal]')).toEqual({
      url: new URL('http://hooks.internal/'),
      secret,
    });
    const refused: [string, string | undefined, string][] = [
      [
        'http://hooks.example/T0KEN',
        undefined,
        'line 3: approvals.webhook.url must be an https:// URL, or name a host of',
      ],
      ['ftp://hooks.example/T0KEN', undefined, 'line 3: approvals.webhook.url must be an https:// URL'],
      ['T0KEN', undefined, 'line 3: approvals.webhook.url must be an https:// URL'],
      ['https://hooks.example/T0KEN', short, 'line 4: approvals.webhook.secretFile must name a file with at least 32'],
      ['https://hooks.example/T0KEN', '/absent', 'line 4: approvals.webhook.secretFile cannot be read: ENOENT'],
      ['https://hooks.example/T0KEN', 's3cret', 'line 4: approvals.webhook.secretFile must be an absolute path'],
    ];
    for (const [url, file, message] of refused) {
      expect(() => read(url, file)).toThrow(message);
      expect(() => read(url, file)).not.toThrow(/T0KEN|s3cret/);
    }
  });
});
