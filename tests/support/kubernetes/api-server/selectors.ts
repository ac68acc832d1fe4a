import { badRequest } from './status.ts';
import type { KubeObject } from './store.ts';

export type Matcher = (object: KubeObject) => boolean;

const key = '[A-Za-z0-9][A-Za-z0-9._/-]*';
const value = '[A-Za-z0-9._-]*';
const requirement = new RegExp(
  String.raw`^\s*(?:(?<absent>!)?\s*(?<exists>${key})|(?<equal>${key})\s*(?<sign>==|=|!=)\s*(?<value>${value})|` +
    String.raw`(?<set>${key})\s+(?<operator>in|notin)\s*\((?<values>[^()]*)\))\s*(?:,|$)`,
);

/** Compiles a selector of labels with =, ==, !=, in, notin and existence. Throws a 400 for any other text. */
export function parseLabelSelector(text: string): Matcher {
  const requirements: ((labels: Record<string, string>) => boolean)[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const match = requirement.exec(rest);
    if (!match) throw badRequest(`unable to parse requirement: found '${rest}'`);
    requirements.push(compile(match.groups ?? {}));
    rest = rest.slice(match[0].length);
  }
  return ({ metadata }) => requirements.every((isMet) => isMet(metadata.labels ?? {}));
}

function compile(groups: Record<string, string | undefined>): (labels: Record<string, string>) => boolean {
  const { absent, exists, equal, sign, set, operator } = groups;
  if (exists !== undefined) return (labels) => (labels[exists] === undefined) === (absent !== undefined);
  if (equal !== undefined) return (labels) => (labels[equal] === groups.value) === (sign !== '!=');
  const values = new Set((groups.values ?? '').split(',').map((one) => one.trim()));
  return (labels) => {
    const label = labels[set ?? ''];
    return (label !== undefined && values.has(label)) === (operator === 'in');
  };
}

const fields: Record<string, (object: KubeObject) => string> = {
  'metadata.name': ({ metadata }) => metadata.name,
  'metadata.namespace': ({ metadata }) => metadata.namespace ?? '',
};
const podFields: Record<string, (object: KubeObject) => string> = {
  ...fields,
  'spec.nodeName': ({ spec }) => (spec as { nodeName?: string }).nodeName ?? '',
  'status.phase': ({ status }) => (status as { phase?: string }).phase ?? '',
};

/** Compiles a selector of fields. Throws a 400 for a field by which the resource cannot be selected. */
export function parseFieldSelector(resource: string, text: string): Matcher {
  const known = resource === 'pods' ? podFields : fields;
  const requirements = text
    .split(',')
    .filter((part) => part !== '')
    .map((part): Matcher => {
      const [, name = '', sign = '', wanted = ''] = /^([^=!]+)(!=|==|=)(.*)$/.exec(part) ?? [];
      if (sign === '') throw badRequest(`invalid field selector: ${part}`);
      const read = known[name];
      if (!read) throw badRequest(`field label not supported: ${name}`);
      return (object) => (read(object) === wanted) === (sign !== '!=');
    });
  return (object) => requirements.every((isMet) => isMet(object));
}

/** Returns the name that a selector of fields asks for, by which access is decided too. */
export function selectedName(text: string): string | undefined {
  return /^metadata\.name==?([^,]+)$/.exec(text)?.[1];
}
