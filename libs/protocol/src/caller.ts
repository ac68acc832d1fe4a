import { z } from 'zod';

const text = () => z.string('must be a string').min(1, 'must not be empty').max(256, 'must be at most 256 characters');

/** Who asks: a person or a program that uses a fleet through a server. */
export interface Caller {
  /** Identifies the caller among all callers of the fleet. */
  id: string;
  /** Name for people. Several callers may have the same name. */
  name: string;
}

export const callerSchema = z
  .strictObject(
    {
      id: text().meta({ description: 'Identifies the caller among all callers of the fleet.' }),
      name: text().meta({ description: 'Name for people. Several callers may have the same name.' }),
    },
    'must be { id, name }',
  )
  .meta({
    id: 'Caller',
    description: 'Who asks: a person or a program that uses a fleet through a server.',
  });

/** The caller beside what is sealed: an entry, a file operation, the options of a detached batch. */
export const submittedSchema = z.object({ submittedBy: callerSchema.optional() });
