//! Whether this process is one of several that a launcher started together.
//!
//! The launchers of MPI (`mpirun`, `mpiexec`, `srun`) tell their processes by environment
//! variables. Programs built without MPI look at them too: several copies that do not know of each
//! other would do the same work and overwrite each other's results.

/// How many processes were started together with this one, itself included, if a launcher says so.
///
/// | launcher | variable |
/// |---|---|
/// | OpenMPI's mpirun | `OMPI_COMM_WORLD_SIZE` |
/// | MPICH's and Intel MPI's mpirun, `srun --mpi=pmi2` | `PMI_SIZE` |
/// | MVAPICH2's | `MV2_COMM_WORLD_SIZE` |
/// | srun | `SLURM_STEP_NUM_TASKS` (`SLURM_NTASKS` is set in the batch script too) |
pub fn ranks() -> Option<usize> {
    ranks_of(|name| std::env::var(name).ok())
}

/// Whether this process is one of several.
pub fn is_launched() -> bool {
    ranks().is_some_and(|ranks| ranks > 1)
}

/// Whether `srun` started this process itself, and not an `mpirun` within a job of Slurm.
pub fn is_slurm_step() -> bool {
    is_slurm_step_of(|name| std::env::var(name).ok())
}

fn is_slurm_step_of(variable: impl Fn(&str) -> Option<String>) -> bool {
    let tasks = variable("SLURM_STEP_NUM_TASKS").and_then(|text| text.trim().parse().ok());
    // What an `mpirun` starts by srun is one task a node.
    tasks.is_some() && tasks == ranks_of(variable)
}

fn ranks_of(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"]
        .into_iter()
        .find_map(|name| variable(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks_with(variables: &[(&str, &str)]) -> Option<usize> {
        ranks_of(|name| value(variables, name))
    }

    fn value(variables: &[(&str, &str)], name: &str) -> Option<String> {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn launchers_are_recognised() {
        assert_eq!(ranks_with(&[]), None);
        assert_eq!(ranks_with(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "0")]), Some(4));
        assert_eq!(ranks_with(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]), Some(2));
        assert_eq!(ranks_with(&[("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "3")]), Some(8));
    }

    #[test]
    fn a_batch_script_is_no_rank() {
        assert_eq!(ranks_with(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
    }

    #[test]
    fn mpirun_within_a_step_of_slurm_counts_for_itself() {
        // One task of Slurm that starts four ranks.
        let variables = [("SLURM_STEP_NUM_TASKS", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(ranks_with(&variables), Some(4));
        assert!(!is_slurm_step_of(|name| value(&variables, name)));
    }

    #[test]
    fn srun_is_told_from_mpirun() {
        let is_step = |variables: &[(&str, &str)]| is_slurm_step_of(|name| value(variables, name));
        assert!(is_step(&[("SLURM_STEP_NUM_TASKS", "8")]));
        assert!(is_step(&[("SLURM_STEP_NUM_TASKS", "8"), ("PMI_SIZE", "8")]));
        assert!(!is_step(&[("PMI_SIZE", "8")]));
        assert!(!is_step(&[]));
    }
}
