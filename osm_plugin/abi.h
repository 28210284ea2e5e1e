/* List the members of OpenSM's structs that the plugin uses.  build.c stores in the library the sizes and offsets that
 * these members have in the headers of the build.  So these sizes and offsets can be compared with other headers
 * without loading the library. */
#pragma once

#define IBNUE_STRUCTS(S) \
    S(osm_opensm_t) S(osm_subn_t) S(osm_subn_opt_t) S(osm_qos_options_t) S(osm_sm_t) S(osm_sa_t) S(osm_vl15_t) \
    S(osm_ucast_mgr_t) S(osm_log_t) S(osm_stats_t) S(osm_node_t) S(osm_switch_t) S(osm_physp_t) S(osm_mcast_tbl_t) \
    S(osm_port_t) S(osm_dr_path_t) S(osm_event_plugin_t) S(osm_routing_engine_t) S(external_routing_engine_module_t) \
    S(cl_qmap_t) S(cl_map_item_t) S(cl_plock_t) S(ib_port_info_t) S(ib_node_info_t) S(osm_madw_context_t) \
    S(osm_mgrp_box_t) S(osm_mcast_work_obj_t) S(osm_prtn_t) S(osm_qos_policy_t) S(osm_qos_match_rule_t) \
    S(osm_qos_level_t) S(cl_list_t) S(cl_qlist_t)

#define IBNUE_MEMBERS(M) \
    M(osm_opensm_t, osm_version) M(osm_opensm_t, subn) M(osm_opensm_t, sm) M(osm_opensm_t, sa) M(osm_opensm_t, vl15) \
    M(osm_opensm_t, log) M(osm_opensm_t, lock) M(osm_opensm_t, routing_engine_list) \
    M(osm_opensm_t, routing_engine_used) M(osm_opensm_t, stats) M(osm_opensm_t, no_fallback_routing_engine) \
    M(osm_subn_t, p_osm) M(osm_subn_t, sw_guid_tbl) M(osm_subn_t, node_guid_tbl) M(osm_subn_t, port_guid_tbl) \
    M(osm_subn_t, port_lid_tbl) M(osm_subn_t, opt) M(osm_subn_t, max_ucast_lid_ho) M(osm_subn_t, force_heavy_sweep) \
    M(osm_subn_t, need_update) M(osm_subn_t, mgrp_mgid_tbl) M(osm_subn_t, p_qos_policy) M(osm_subn_t, prtn_pkey_tbl) \
    M(osm_subn_t, sm_state) M(osm_subn_t, coming_out_of_standby) M(osm_subn_t, first_time_master_sweep) \
    M(osm_subn_opt_t, max_op_vls) M(osm_subn_opt_t, lmc) M(osm_subn_opt_t, log_file) M(osm_subn_opt_t, qos) \
    M(osm_subn_opt_t, qos_options) M(osm_subn_opt_t, qos_ca_options) M(osm_subn_opt_t, qos_sw0_options) \
    M(osm_subn_opt_t, qos_swe_options) M(osm_subn_opt_t, qos_rtr_options) M(osm_subn_opt_t, event_plugin_name) \
    M(osm_subn_opt_t, event_plugin_options) M(osm_subn_opt_t, config_file) M(osm_subn_opt_t, root_guid_file) \
    M(osm_subn_opt_t, hop_weights_file) M(osm_subn_opt_t, port_prof_ignore_file) \
    M(osm_subn_opt_t, guid_routing_order_file) M(osm_subn_opt_t, port_search_ordering_file) \
    M(osm_subn_opt_t, cn_guid_file) M(osm_subn_opt_t, io_guid_file) M(osm_subn_opt_t, ids_guid_file) \
    M(osm_subn_opt_t, lid_matrix_dump_file) M(osm_subn_opt_t, lfts_file) M(osm_subn_opt_t, connect_roots) \
    M(osm_subn_opt_t, port_shifting) M(osm_subn_opt_t, scatter_ports) M(osm_subn_opt_t, guid_routing_order_no_scatter) \
    M(osm_subn_opt_t, port_profile_switch_nodes) M(osm_subn_opt_t, avoid_throttled_links) M(osm_subn_opt_t, fdr10) \
    M(osm_subn_opt_t, max_reverse_hops) M(osm_subn_opt_t, quasi_ftree_indexing) M(osm_subn_opt_t, do_mesh_analysis) \
    M(osm_subn_opt_t, lash_start_vl) M(osm_subn_opt_t, nue_max_num_vls) M(osm_subn_opt_t, nue_include_switches) \
    M(osm_subn_opt_t, use_optimized_slvl) M(osm_subn_opt_t, sm_assigned_guid) M(osm_subn_opt_t, sm_sl) \
    M(osm_subn_opt_t, qos_policy_file) M(osm_subn_opt_t, partition_config_file) \
    M(osm_subn_opt_t, routing_engine_names) M(osm_qos_options_t, max_vls) M(osm_qos_options_t, sl2vl) \
    M(osm_qos_options_t, vlarb_high) M(osm_qos_options_t, vlarb_low) M(osm_sm_t, p_subn) M(osm_sm_t, p_log) \
    M(osm_sm_t, p_lock) M(osm_sm_t, ucast_mgr) M(osm_sa_t, p_subn) M(osm_sa_t, p_log) M(osm_vl15_t, p_stats) \
    M(osm_ucast_mgr_t, p_subn) M(osm_stats_t, qp0_mads_outstanding) M(osm_node_t, sw) M(osm_node_t, node_info) \
    M(osm_node_t, physp_tbl_size) M(osm_node_t, print_desc) M(osm_node_t, physp_table) M(osm_node_t, map_item) \
    M(osm_switch_t, p_node) M(osm_switch_t, switch_info) M(osm_switch_t, max_lid_ho) M(osm_switch_t, num_ports) \
    M(osm_switch_t, num_hops) M(osm_switch_t, hops) M(osm_switch_t, lft) M(osm_switch_t, new_lft) \
    M(osm_switch_t, lft_size) M(osm_switch_t, mcast_tbl) M(osm_switch_t, need_update) M(osm_physp_t, port_info) \
    M(osm_physp_t, ext_port_info) M(osm_physp_t, port_guid) M(osm_physp_t, port_num) M(osm_physp_t, p_node) \
    M(osm_physp_t, p_remote_physp) M(osm_physp_t, healthy) M(osm_physp_t, dr_path) M(osm_mcast_tbl_t, num_entries) \
    M(osm_mcast_tbl_t, num_ports) M(osm_port_t, p_physp) M(osm_dr_path_t, hop_count) M(osm_event_plugin_t, report) \
    M(osm_routing_engine_t, build_lid_matrices) M(osm_routing_engine_t, path_sl) M(osm_routing_engine_t, destroy) \
    M(osm_routing_engine_t, name) M(osm_routing_engine_t, context) M(osm_routing_engine_t, ucast_build_fwd_tables) \
    M(osm_routing_engine_t, update_sl2vl) M(osm_routing_engine_t, update_vlarb) \
    M(osm_routing_engine_t, mcast_build_stree) M(osm_routing_engine_t, next) \
    M(external_routing_engine_module_t, context) M(cl_qmap_t, root) M(cl_qmap_t, nil) M(cl_qmap_t, state) \
    M(cl_qmap_t, count) M(cl_map_item_t, pool_item) M(cl_map_item_t, p_left) M(cl_map_item_t, p_right) \
    M(cl_map_item_t, p_up) M(cl_map_item_t, key) M(osm_madw_context_t, lft_context) M(osm_madw_context_t, pi_context) \
    M(osm_mgrp_box_t, mlid) M(osm_mcast_work_obj_t, p_port) M(osm_prtn_t, sl) M(osm_prtn_t, pkey) \
    M(osm_prtn_t, part_guid_tbl) M(osm_qos_policy_t, qos_match_rules) \
    M(osm_qos_policy_t, p_default_qos_level) M(osm_qos_match_rule_t, p_qos_level) M(osm_qos_level_t, sl_set) \
    M(osm_qos_level_t, sl)
