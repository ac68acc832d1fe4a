import { DEFAULTS } from '../../libs/protocol/src/defaults.ts';
import { fleetConfigurationSchema } from '../../libs/protocol/src/fleet-configuration.ts';
import { toJsonSchema } from '../../libs/protocol/src/json-schema.ts';
import { describeAmount } from './describe-default.ts';
import type { ClassEntry, FieldEntry, TypeEntry } from './read-types.ts';

export interface Page {
  /** Path below docs/reference. */
  path: string;
  text: string;
}

const WRITTEN_BY = '<!-- Written by `npm run reference` from the types of the SDK. -->';

interface PagePlan {
  path: string;
  title: string;
  intro: string;
  types: string[];
}

/** Pages with their types in order. All types that are not listed are on the last page. */
const PLANS: PagePlan[] = [
  {
    path: 'session.md',
    title: 'Sessions',
    intro:
      'What `fleet.session(id, spec)` takes, and what a session tells of itself. How sessions work: [sessions.md](../sessions.md).',
    types: [
      'SessionSpec',
      'PolicyName',
      'ExecutionPolicy',
      'DockerPolicy',
      'HostPolicy',
      'KubernetesPolicy',
      'OutputOptions',
      'LimitOptions',
      'RedactionRule',
      'SessionOptions',
      'SessionFilter',
      'SessionInfo',
      'SessionState',
      'SessionEventFields',
      'SessionEventData',
      'ShellEventData',
      'AttachOptions',
      'TerminalEnd',
    ],
  },
  {
    path: 'command.md',
    title: 'Commands',
    intro:
      'What `session.run` and `session.submit` take, and what they return. How commands run and end: [sessions.md](../sessions.md), [output.md](../output.md).',
    types: [
      'RunOptions',
      'StdinSource',
      'OpenStdin',
      'Result',
      'Outcome',
      'ResultFields',
      'SuccessResult',
      'FailureResult',
      'TimeoutResult',
      'CancellationResult',
      'DenialResult',
      'BlockedResult',
      'LostResult',
      'ErrorResult',
      'BlockedOutput',
      'WireError',
      'FollowOptions',
      'OutputChunk',
      'OmittedBecause',
      'LogOptions',
      'LogChunk',
      'WriteOptions',
      'ModelTextOptions',
      'ModelText',
    ],
  },
  {
    path: 'fleet.md',
    title: 'Fleet, batches, hosts, files, tools',
    intro: 'What `Fleet.connect` and the other methods of a fleet take and return.',
    types: [],
  },
];

/** Types whose fields are listed where they are used, or in another document. */
const ELSEWHERE = new Set([
  'CommandEventType',
  'EntryPayload',
  'ErrorCode',
  'EventType',
  'ExecutionOptions',
  'FleetConfigurationInput',
  'LogRange',
  'RunOptionsInput',
  'SessionEvent',
  'StreamName',
]);

/** Types with defaults, and the part of DEFAULTS that has them. */
export const DEFAULTS_OF: Record<string, keyof typeof DEFAULTS> = {
  SessionSpec: 'session',
  OutputOptions: 'output',
  LimitOptions: 'limits',
  RunOptions: 'command',
  AttachOptions: 'terminal',
  BatchOptions: 'batch',
};

/** Returns the JSON Schema of the file that `config apply` reads. */
export function writeConfigurationSchema(): Page {
  const schema = toJsonSchema(fleetConfigurationSchema, 'input');
  return { path: 'fleet-configuration.schema.json', text: `${JSON.stringify(schema, undefined, 2)}\n` };
}

export function writePages(types: readonly TypeEntry[]): Page[] {
  const placed = new Set([...PLANS.flatMap((plan) => plan.types), ...ELSEWHERE]);
  // Types with only methods are on the page of methods.
  const withFields = types.filter(({ fields }) => fields.length === 0 || !fields.every(({ isMethod }) => isMethod));
  const rest = withFields.map(({ name }) => name).filter((name) => !placed.has(name));
  const base = new Set(types.find(({ name }) => name === 'ResultFields')?.fields.map(({ name }) => name));
  const pages = PLANS.map((plan, index) => {
    const names = index === PLANS.length - 1 ? rest : plan.types;
    const sections = names.flatMap((name) => {
      const found = types.find((type) => type.name === name);
      return found === undefined ? [] : [toSection(withoutBase(found, base))];
    });
    const head = `# ${plan.title}\n\n${WRITTEN_BY}\n\n${plan.intro}`;
    return { path: plan.path, text: `${[head, ...sections].join('\n\n')}\n` };
  });
  return [toIndex(), ...pages];
}

/** Returns the page of methods, with the arguments, results and errors of each. */
export function writeMethods(classes: readonly ClassEntry[]): Page {
  const sections = classes.map(({ name, text, members }) => {
    const parts = members.map((member) =>
      `### ${name}.${member.name}\n\n\`\`\`ts\n${member.signature}\n\`\`\`\n\n${member.text}`.trim(),
    );
    return [`## ${name}`, text, ...parts].filter((part) => part !== '').join('\n\n');
  });
  const intro =
    'Every method and property of the SDK. What `async` is in front of, and what returns a `Promise`, has to be awaited; an `AsyncGenerator` is read with `for await`.';
  // Samples in docstrings are parts of programs, so no test runs them.
  const text = [`# Methods`, WRITTEN_BY, intro, ...sections].join('\n\n');
  return { path: 'methods.md', text: `${text}\n` };
}

function toIndex(): Page {
  const lines = PLANS.map(({ path, title, intro }) => `* [${title}](${path}): ${intro}`);
  return {
    path: 'README.md',
    text: `# Reference

${WRITTEN_BY}

Every option and field of the SDK, with its type, default, unit and limit. Times are in ms, sizes in bytes. An option that is
\`undefined\` is the same as one that is absent, and an unknown one is refused.

* [Methods](methods.md): every method of a fleet, a session and its files, a command, a batch and the rest,
  with what it resolves to and what it rejects with.
${lines.join('\n')}
* [HTTP](http.md): every path of the HTTP API.
* Error codes: [errors.md](../errors.md). Verbs and flags: [cli.md](../cli.md).
  Variables of a worker: [operations.md](../operations.md); of everything that connects: \`ConnectOptions\` in [fleet.md](fleet.md).
`,
  };
}

/** Returns a Result of one outcome without the fields of every Result. */
function withoutBase(type: TypeEntry, base: ReadonlySet<string>): TypeEntry {
  if (!type.name.endsWith('Result') || !type.fields.some(({ name }) => name === 'outcome')) return type;
  const isOwn = ({ name, type: own, optional }: FieldEntry) => own !== 'undefined' && (!base.has(name) || !optional);
  return {
    ...type,
    fields: type.fields.filter((field) => isOwn(field) && (!base.has(field.name) || field.name === 'blocked')),
  };
}

function toSection({ name, text, fields, is }: TypeEntry): string {
  const parts = [`## ${name}`, ...(text === '' ? [] : [text])];
  if (fields.length === 0) return [...parts, `\`\`\`ts\ntype ${name} = ${is};\n\`\`\``].join('\n\n');
  const hasDefault = fields.some((field) => field.default !== undefined);
  const hasLimit = fields.some((field) => field.limit !== undefined);
  const row = (cells: string[], [fieldDefault, limit]: [string, string], meaning: string) =>
    `| ${[...cells, ...(hasDefault ? [fieldDefault] : []), ...(hasLimit ? [limit] : []), meaning].join(' | ')} |`;
  const rows = fields.map((field) =>
    row(
      [`\`${shownName(field, hasDefault)}\``, code(field.type)],
      [toDefault(name, field), field.limit ?? ''],
      toCell(field.text),
    ),
  );
  const columns = 3 + (hasDefault ? 1 : 0) + (hasLimit ? 1 : 0);
  const header = row(['Field', 'Type'], ['Default', 'Limit'], 'Meaning');
  return [...parts, [header, `|${'---|'.repeat(columns)}`, ...rows].join('\n')].join('\n\n');
}

/** Marks optional fields, except in options, which are all optional. */
const shownName = ({ name, optional }: FieldEntry, isOptions: boolean) => (optional && !isOptions ? `${name}?` : name);

/** Formats a default with the unit that the name of the field gives. */
function toDefault(type: string, { name, default: text = '' }: FieldEntry): string {
  const part: Record<string, unknown> = type in DEFAULTS_OF ? DEFAULTS[DEFAULTS_OF[type] as keyof typeof DEFAULTS] : {};
  const inWords = part[name] === undefined ? '' : describeAmount(name, part[name]);
  return toCell(inWords === '' ? text : `${text} (${inWords})`);
}

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;

const toCell = (text: string) =>
  text
    .trim()
    .replaceAll('|', '\\|')
    .replaceAll(/\n- /g, '<br>• ')
    .replaceAll(/^- /g, '• ')
    .replaceAll(/\s*\n\s*/g, ' ');
