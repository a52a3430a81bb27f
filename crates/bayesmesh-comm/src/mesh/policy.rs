//! The mesh where nobody has asked for one.

use crate::mesh::Mesh;

impl Mesh {
    /// The mesh for ranks of which `nodes[n]` are on node n (see
    /// [`node_sizes`](crate::node_sizes)), with `draws` draws a step and `batch` rows.
    ///
    /// Ranks of a node share the draws, because they can share the loaded batch; nodes share the
    /// rows. In full: a group of ranks shares the draws, and groups share the rows. The group is as
    /// large as possible such that
    ///
    /// 1. all ranks are in a group, each rank has a draw and each group a row;
    /// 2. every node has whole groups. This is dropped where 1 and 2 leave nothing, or where nodes
    ///    are uneven and groups would be single ranks.
    ///
    /// Where not even 1 is possible, each rank is a group: [`validate`](Self::validate) then says
    /// what is missing. No ranks count as one.
    ///
    /// ```
    /// use bayesmesh_comm::Mesh;
    ///
    /// // Two nodes of four ranks: draws within the nodes, rows across.
    /// assert_eq!(Mesh::for_nodes(&[4, 4], 8, 64).to_string(), "4x2");
    /// // One node with more ranks than draws divides the rows too.
    /// assert_eq!(Mesh::for_nodes(&[8], 4, 64).to_string(), "4x2");
    /// ```
    pub fn for_nodes(nodes: &[usize], draws: usize, batch: usize) -> Mesh {
        let ranks = nodes.iter().sum::<usize>().max(1);
        let fits = |&samples: &usize| {
            samples <= draws && ranks.is_multiple_of(samples) && ranks / samples <= batch
        };
        let within = |samples: &usize| nodes.iter().all(|node| node.is_multiple_of(*samples));
        let samples = match (1..=ranks).rev().filter(fits).find(within) {
            Some(samples) if samples > 1 || !are_uneven(nodes) => samples,
            _ => (1..=ranks).rev().find(fits).unwrap_or(1),
        };
        Mesh { samples, data: ranks / samples }
    }
}

/// Whether nodes have different numbers of ranks: then no mesh is good for all of them.
pub fn are_uneven(nodes: &[usize]) -> bool {
    nodes.iter().any(|node| *node != nodes[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(nodes: &[usize], draws: usize, batch: usize) -> usize {
        let mesh = Mesh::for_nodes(nodes, draws, batch);
        assert_eq!(mesh.size(), nodes.iter().sum());
        mesh.samples_size()
    }

    #[test]
    fn more_ranks_than_draws_divide_the_data_too() {
        assert_eq!(samples(&[4], 8, 64), 4);
        assert_eq!(samples(&[8], 4, 64), 4);
        assert_eq!(samples(&[6], 4, 64), 3);
        assert_eq!(samples(&[7], 4, 64), 1);
        assert_eq!(samples(&[1], 1, 64), 1);
    }

    #[test]
    fn draws_are_divided_within_nodes() {
        assert_eq!(samples(&[4, 4], 8, 64), 4);
        assert_eq!(samples(&[1, 1, 1], 8, 64), 1);
        assert_eq!(samples(&[8, 8, 4], 8, 64), 4);
        // Either way somebody sends more than is good.
        assert_eq!(samples(&[3, 2], 8, 64), 5);
        assert_eq!(samples(&[8, 8, 7], 8, 64), 1);
    }

    #[test]
    fn data_are_not_divided_into_more_parts_than_there_are() {
        assert_eq!(samples(&[1, 1, 1, 1], 8, 3), 4);
        assert_eq!(samples(&[2, 2, 2], 8, 2), 6);
        assert_eq!(samples(&[7], 4, 4), 1);
    }

    #[test]
    fn no_ranks_count_as_one() {
        assert_eq!(Mesh::for_nodes(&[], 8, 64), Mesh::serial());
    }

    #[test]
    fn nodes_of_equal_size_are_even() {
        assert!(!are_uneven(&[]) && !are_uneven(&[3]) && !are_uneven(&[2, 2, 2]));
        assert!(are_uneven(&[2, 2, 1]));
    }
}
