import { z } from 'zod';
import { sandboxPathSchema } from './field-schemas.ts';

/** Where a workspace is mounted that names no other place. */
const USUAL_TARGET = '/workspace';

/**
 * Nothing is mounted there, in one of them, or above one of them:
 * a session would lose its programs, its devices or its keeper.
 */
const PROTECTED_TARGETS = [
  '/.shellfleet',
  '/.shellfleet-run',
  '/bin',
  '/boot',
  '/dev',
  '/etc',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/proc',
  '/run',
  '/sbin',
  '/sys',
  '/usr',
  '/var/run',
];

const targetSchema = sandboxPathSchema
  .transform((target) => target.replace(/(?<=.)\/+$/, ''))
  .superRefine((target, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    if (target.split('/').some((name, at) => name === '.' || name === '..' || (name === '' && at > 0)))
      refuse("must be a plain path, without '.', '..' and '//'");
    else if (target === '/tmp' || isSystemFolder(target))
      refuse('is a folder of the system or of the keeper: nothing is mounted there');
    else if (target.startsWith(`${USUAL_TARGET}/`))
      refuse(`is below ${USUAL_TARGET}, which is the home of the session`);
  });

/** The path alone, or with what else is asked for: equal mounts have one form. */
export const workspaceSchema = z.union(
  [
    sandboxPathSchema,
    z
      .strictObject({
        path: sandboxPathSchema,
        target: targetSchema.optional(),
        readOnly: z.boolean('must be true or false').default(false),
      })
      .transform(({ path, target, readOnly }) => withoutDefaults(path, target, readOnly)),
  ],
  { error: 'must be an absolute path, or { path, target, readOnly }' },
);
type ParsedWorkspace = z.output<typeof workspaceSchema>;

/** The folder of the host that a spec asks for, and where it is mounted. */
export interface Workspace {
  path: string;
  target: string;
  readOnly: boolean;
}

export function workspaceOf({ workspace }: { workspace?: ParsedWorkspace | undefined }): Workspace | undefined {
  if (workspace === undefined) return undefined;
  const {
    path,
    target = USUAL_TARGET,
    readOnly = false,
  } = typeof workspace === 'string' ? { path: workspace } : workspace;
  return { path, target, readOnly };
}

/** A folder of the system or of the keeper, one in it or one above it: nothing else may be mounted there. */
export function isSystemFolder(path: string): boolean {
  return path === '/' || PROTECTED_TARGETS.some((other) => areNested(other, path));
}

/** As the schema gives it. */
export function toWorkspaceField({ path, target, readOnly }: Workspace): ParsedWorkspace {
  return withoutDefaults(path, target, readOnly);
}

function withoutDefaults(
  path: string,
  target: string | undefined,
  readOnly: boolean,
): string | { path: string; target?: string; readOnly?: true } {
  const isUsual = target === undefined || target === USUAL_TARGET;
  if (isUsual && !readOnly) return path;
  return { path, ...(isUsual ? {} : { target }), ...(readOnly ? { readOnly: true as const } : {}) };
}

function areNested(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}
