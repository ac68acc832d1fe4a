import { describe, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { BatchOptions, batchOptionsSchema } from './batch/batch-options.ts';
import type { Task, taskSchema } from './batch/task.ts';
import type { TaskResult, taskResultReplySchema } from './batch/task-result.ts';
import type { detachedBatchSchema } from './detached/detached-batch-schema.ts';
import type { DetachedBatch } from './detached/detached-info.ts';
import type { FleetLoad } from './read/fleet-load.ts';
import type { fleetLoadSchema, tenantInfoSchema } from './read/load-schemas.ts';
import type { TenantInfo } from './read/read-tenants.ts';

describe('the type', () => {
  test('of an option of a batch is what its schema accepts', () => {
    expectTypeOf<z.input<typeof batchOptionsSchema>>().toEqualTypeOf<Omit<BatchOptions, 'signal'>>();
    expectTypeOf<z.input<typeof taskSchema>>().toEqualTypeOf<Task>();
  });

  test('of a reply is what its schema returns', () => {
    expectTypeOf<z.output<typeof fleetLoadSchema>>().toEqualTypeOf<FleetLoad>();
    expectTypeOf<z.output<typeof tenantInfoSchema>>().toEqualTypeOf<TenantInfo>();
    expectTypeOf<keyof z.output<typeof taskResultReplySchema>>().toEqualTypeOf<keyof TaskResult>();
    expectTypeOf<TaskResult>().toExtend<z.output<typeof taskResultReplySchema>>();
    expectTypeOf<keyof z.output<typeof detachedBatchSchema>>().toEqualTypeOf<keyof DetachedBatch>();
    expectTypeOf<DetachedBatch>().toExtend<z.output<typeof detachedBatchSchema>>();
  });
});
