import type { ChartObject } from '../support/render-chart.ts';

const VERBS = {
  pods: 'create delete get list patch watch',
  'coordination.k8s.io/leases': 'create get',
  resourcequotas: 'list watch',
};
const WITH_CLAIMS = { ...VERBS, persistentvolumeclaims: 'create delete get list watch' };

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** Returns where the rights of the worker differ from the verbs that it needs, and who else has rights. */
export function findRightsFaults(objects: readonly ChartObject[], { hasClaims }: { hasClaims: boolean }): string[] {
  const roles = objects.filter(({ kind }) => /Role$/.test(kind));
  const given = Object.fromEntries(roles.flatMap(({ rules }) => (rules as Rule[]).flatMap(flatten)));
  const needed: Record<string, string> = hasClaims ? WITH_CLAIMS : VERBS;
  const names = [...new Set([...Object.keys(given), ...Object.keys(needed)])];
  return [
    ...names.map((name) => given[name] !== needed[name] && `${name}: [${given[name]}] and not [${needed[name]}]`),
    roles.length !== 1 && `there are ${roles.length} roles`,
    ...objects.filter(({ kind }) => /Binding$/.test(kind)).map(checkBinding),
    ...objects
      .filter(({ kind }) => kind === 'ServiceAccount')
      .map((one) => one.automountServiceAccountToken !== false && `${one.metadata.name} gives every Pod its token`),
  ].filter((fault) => fault !== false);
}

function flatten({ apiGroups, resources, verbs, ...others }: Rule): [string, string][] {
  return apiGroups.flatMap((group) =>
    resources.map((resource): [string, string] => [
      `${group}${group && '/'}${resource}${Object.keys(others).join()}`,
      verbs.toSorted().join(' '),
    ]),
  );
}

function checkBinding({ kind, metadata, subjects, roleRef }: ChartObject): string | false {
  const bound = subjects.map((one: Record<string, string>) => `${one.kind} ${one.name} of ${one.namespace}`).join();
  const isRight =
    kind === 'RoleBinding' &&
    roleRef.kind === 'Role' &&
    roleRef.name === metadata.name &&
    bound === 'ServiceAccount trial-shellfleet-worker of workers-here';
  return !isRight && `${kind} ${metadata.name} binds ${roleRef.kind} ${roleRef.name} to ${bound}`;
}
